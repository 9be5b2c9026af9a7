//! An emulated machine: a folder with the state of its GPUs and the stand-ins for the driver's files.

mod environment;
mod error;
mod files;

pub use error::MachineError;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bytemuck::Zeroable;
use carma_gpu::find_program;
use carma_sim::Servers;

use crate::driver_version::DriverVersion;
use crate::profile::Profile;
use crate::state::{GpuRecord, SharedState, State, StateError, Text, uuid};
use files::{create_files, remove_files};

/// Names the folder of the machine to use.
pub const VARIABLE: &str = "CARMA_EMU";
/// More than one server has.
const MAX_GPUS: u32 = 64;

/// Programs that a machine emulates; each is the `carma` program under another name.
pub const PROGRAMS: [&str; 4] = ["dcgmi", "nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"];
/// The library that a machine emulates.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// An emulated machine.
#[derive(Debug)]
pub struct Machine {
    folder: PathBuf,
    state: SharedState,
}

impl Machine {
    /// The default folder: `CARMA_EMU`, else one for this user.
    pub fn default_folder() -> PathBuf {
        env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map_or_else(own_folder, PathBuf::from)
    }

    /// Makes a machine with these GPUs. Its time runs `speed` times as fast as real time. `program` is the `carma` program, which emulates
    /// the driver's programs; without it there are none.
    pub fn create(folder: &Path, servers: &Servers, speed: f64, program: Option<&Path>) -> Result<Self, MachineError> {
        if !(0.001..=100_000.0).contains(&speed) {
            return Err(MachineError::Speed(speed));
        }
        if folder.as_os_str().as_bytes().contains(&b':') {
            return Err(MachineError::Colon(folder.to_owned()));
        }
        // Groups joined by commas are in one server, which may have several kinds of GPUs.
        if servers.groups.iter().any(|group| group.servers != 1) || servers.gpus() > MAX_GPUS {
            return Err(MachineError::TooMany);
        }
        let state = folder.join("state");
        if state.exists() {
            return Err(MachineError::Exists(folder.to_owned()));
        }
        // Files that another process has made there meanwhile stay.
        let undo = || {
            if !state.exists() {
                remove_files(folder);
            }
        };
        create_files(folder, program).inspect_err(|_| undo())?;
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
        // Its library is loaded into the program that opens it: other users must not be able to place one in a shared folder.
        if folder == own_folder() && ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
            return Err(MachineError::Foreign(folder.to_owned()));
        }
        Ok(Self { folder: folder.to_owned(), state: SharedState::open(&state)? })
    }

    /// Removes the state of the machine in a folder. Processes on it go on until they next access it.
    pub(crate) fn remove_state(folder: &Path) -> Result<(), MachineError> {
        let state = folder.join("state");
        fs::remove_file(&state).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => MachineError::Absent(folder.to_owned()),
            _ => MachineError::File { path: state, error },
        })
    }

    /// Removes the other files of the machine in a folder.
    pub(crate) fn remove_files(folder: &Path) {
        remove_files(folder);
    }

    /// The folder of the machine that a program belongs to, by its own path; else the default one.
    pub(crate) fn folder_of(program: &Path) -> PathBuf {
        // The parent of the program's folder: by its path, or in `PATH` if it was called by its bare name.
        let own = || find_program(program)?.parent()?.parent().map(Path::to_owned);
        let holds = |folder: &PathBuf| folder.join("state").exists();
        own().filter(holds).unwrap_or_else(Self::default_folder)
    }

    /// The command line of a `carma emu` command for the machine in this folder.
    pub fn command(command: &str, folder: &Path) -> String {
        if folder == Self::default_folder() {
            return format!("carma emu {command}");
        }
        // A path has no zero byte, the only one that cannot be quoted.
        format!("carma emu {command} --folder {}", shlex::try_quote(&folder.to_string_lossy()).unwrap_or_default())
    }

    /// Refuses other users: actions that need root on real GPUs need root or the machine's owner here.
    pub fn check_rights(&self) -> Result<(), MachineError> {
        let (user, owner) = (rustix::process::geteuid(), fs::metadata(&self.folder).map(|found| found.uid()));
        let may = user.is_root() || owner.is_ok_and(|owner| owner == user.as_raw());
        if may { Ok(()) } else { Err(MachineError::Forbidden(self.folder.clone())) }
    }

    /// Its folder.
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

    /// Plays this driver from now on.
    pub fn set_driver(&self, version: DriverVersion) -> Result<(), MachineError> {
        self.with(|state| state.header.driver = version.number())
    }

    /// Emulated seconds since it was made, and how many pass per real second.
    pub fn clock(&self) -> Result<(f64, f64), MachineError> {
        self.with(|state| (state.header.now, state.header.speed))
    }

    /// Driver events so far, without locking: see [`SharedState::events`].
    pub(crate) fn events(&self) -> Option<u64> {
        self.state.events()
    }

    /// Reads or changes the state under its lock.
    pub fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> Result<R, MachineError> {
        self.state.with(act).map_err(|error| match error {
            StateError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => MachineError::Gone(self.folder.clone()),
            error => error.into(),
        })
    }
}

/// The folder of this user's machine, in memory if possible.
fn own_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
    base.join(format!("carma-emu-{}", rustix::process::geteuid().as_raw()))
}

/// An unused GPU.
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
