//! An emulated machine: a folder with the state of its GPUs and the stand-ins for the driver's files.

mod environment;
mod error;
mod furniture;

pub use error::MachineError;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bytemuck::Zeroable;
use carma_sim::Servers;

use crate::mps;
use crate::profile::Profile;
use crate::state::{GpuRecord, SharedState, State, StateError, Text};
use furniture::{clear_out, furnish};

/// Names the folder of the machine to use.
pub const VARIABLE: &str = "CARMA_EMU";
/// More than one server has.
const MOST_GPUS: u32 = 64;

/// Programs that a machine stands in for; each is the `carma` program under another name.
pub const PROGRAMS: [&str; 4] = ["dcgmi", "nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"];
/// The library that a machine stands in for.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// An emulated machine.
#[derive(Debug)]
pub struct Machine {
    folder: PathBuf,
    state: SharedState,
}

impl Machine {
    /// The folder that is used when nobody names one: `CARMA_EMU`, else one for this user.
    pub fn default_folder() -> PathBuf {
        env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map_or_else(own_folder, PathBuf::from)
    }

    /// Makes a machine with these GPUs. Time in it runs `speed` times as fast as outside. `program` is the `carma` program, which stands
    /// in for the driver's programs; without it there are none.
    pub fn create(folder: &Path, servers: &Servers, speed: f64, program: Option<&Path>) -> Result<Self, MachineError> {
        if !(0.001..=100_000.0).contains(&speed) {
            return Err(MachineError::Speed(speed));
        }
        if folder.as_os_str().as_bytes().contains(&b':') {
            return Err(MachineError::Colon(folder.to_owned()));
        }
        // What is joined by commas stands in one server: several kinds of GPUs may.
        if servers.groups.iter().any(|group| group.servers != 1) || servers.gpus() > MOST_GPUS {
            return Err(MachineError::TooMany);
        }
        let state = folder.join("state");
        if state.exists() {
            return Err(MachineError::Exists(folder.to_owned()));
        }
        // What somebody else has made there meanwhile stays.
        let undo = || {
            if !state.exists() {
                clear_out(folder);
            }
        };
        furnish(folder, program).inspect_err(|_| undo())?;
        let kinds = servers.groups.iter().flat_map(|group| std::iter::repeat_n(group.kind, usize::from(group.gpus)));
        let gpus: Vec<GpuRecord> = kinds.enumerate().map(|(place, kind)| gpu(folder, place, Profile::place(kind))).collect();
        let made = SharedState::create(&state, &gpus, speed).map_err(|error| match error {
            StateError::File { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => MachineError::Exists(folder.to_owned()),
            error => error.into(),
        });
        Ok(Self { folder: folder.to_owned(), state: made.inspect_err(|_| undo())? })
    }

    /// Opens the machine in a folder.
    pub fn open(folder: &Path) -> Result<Self, MachineError> {
        let state = folder.join("state");
        let found = fs::metadata(folder).map_err(|_| MachineError::Absent(folder.to_owned()))?;
        if !state.exists() {
            return Err(MachineError::Absent(folder.to_owned()));
        }
        // Its library is loaded into the program that opens it: nobody else may slip one in where everybody may write.
        if folder == own_folder() && ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
            return Err(MachineError::Foreign(folder.to_owned()));
        }
        Ok(Self { folder: folder.to_owned(), state: SharedState::open(&state)? })
    }

    /// Removes the machine in a folder, and returns how many MPS daemons were stopped with it. Processes on it go on until they next look.
    pub fn remove(folder: &Path) -> Result<usize, MachineError> {
        let state = folder.join("state");
        fs::remove_file(&state).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => MachineError::Absent(folder.to_owned()),
            _ => MachineError::File { path: state, error },
        })?;
        let daemons = mps::take_down(folder);
        clear_out(folder);
        Ok(daemons)
    }

    /// What to type for a command of `carma emu` that is about the machine in this folder.
    pub fn command(command: &str, folder: &Path) -> String {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
        match folder.to_string_lossy() {
            _ if folder == Self::default_folder() => format!("carma emu {command}"),
            plain if is_plain(&plain) => format!("carma emu {command} --folder {plain}"),
            odd => format!("carma emu {command} --folder '{}'", odd.replace('\'', r"'\''")),
        }
    }

    /// Refuses whoever may only use it: what needs root on real GPUs needs root or the machine's owner here.
    pub fn check_rights(&self) -> Result<(), MachineError> {
        let (user, owner) = (rustix::process::geteuid(), fs::metadata(&self.folder).map(|found| found.uid()));
        let may = user.is_root() || owner.is_ok_and(|owner| owner == user.as_raw());
        if may { Ok(()) } else { Err(MachineError::Forbidden(self.folder.clone())) }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The stand-in for the driver's library.
    pub fn library(&self) -> PathBuf {
        self.folder.join("lib").join(LIBRARY)
    }

    /// The stand-ins for the driver's programs.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Emulated seconds since it was made, and how many there are to a second.
    pub fn clock(&self) -> Result<(f64, f64), MachineError> {
        self.with(|state| (state.header.now, state.header.speed))
    }

    /// Driver events so far, without waiting for anybody: see [`SharedState::events`].
    pub(crate) fn events(&self) -> Option<u64> {
        self.state.events()
    }

    /// Looks at the state, or changes it, while nobody else is at it.
    pub fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> Result<R, MachineError> {
        self.state.with(act).map_err(|error| match error {
            StateError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => MachineError::Gone(self.folder.clone()),
            error => error.into(),
        })
    }
}

/// The folder of this user's machine, in memory where there is room for files.
fn own_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
    base.join(format!("carma-emu-{}", rustix::process::geteuid().as_raw()))
}

/// A GPU that nobody has used.
fn gpu(folder: &Path, place: usize, profile: usize) -> GpuRecord {
    let kind = &Profile::all()[profile].kind;
    GpuRecord {
        uuid: Text::new(&format!("GPU-{}", uuid(&format!("{}/{place}", folder.display())))),
        profile: profile as u32,
        // Like a server's, in steps that leave room for bridges.
        bus: 7 + 8 * place as u32 % 248 + place as u32 / 31,
        power_limit: (kind.limit_watts * 1000.0) as u32,
        persistence: 1,
        ..GpuRecord::zeroed()
    }
}

/// A UUID (version 8) that is the same for the same name.
pub(crate) fn uuid(name: &str) -> String {
    let hash = |seed: u64| name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(23));
    let (high, low) = (hash(0xCBF2_9CE4_8422_2325), hash(0x9E37_79B9_7F4A_7C15));
    let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0x0FFF);
    format!("{a:08x}-{b:04x}-8{c:03x}-{:04x}-{:012x}", low >> 48 & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF)
}
