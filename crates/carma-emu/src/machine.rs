//! An emulated machine: a folder with the state of its GPUs and the stand-ins for the driver's files.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bytemuck::Zeroable;
use carma_sim::Servers;
use thiserror::Error;

use crate::mps;
use crate::profile::Profile;
use crate::state::{GpuRecord, SharedState, State, StateError, Text};

/// Names the folder of the machine to use.
pub const VARIABLE: &str = "CARMA_EMU";
/// More than one server has.
const MOST_GPUS: u32 = 64;

/// What is wrong with a machine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// Its state.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is one already.
    #[error("there are emulated GPUs in {0} already: `carma emu down` removes them")]
    Exists(PathBuf),
    /// There is none.
    #[error("there are no emulated GPUs in {0}: `carma emu up` makes some")]
    Absent(PathBuf),
    /// It belongs to somebody else.
    #[error("the emulated GPUs in {0} are not yours, though they lie where yours would: name another folder in CARMA_EMU")]
    Foreign(PathBuf),
    /// The stand-in library is not where it should be.
    #[error("the stand-in driver library is missing (`make install` installs it): looked for {}", .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoLibrary(Vec<PathBuf>),
    /// A file cannot be made or removed.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot stand in a list of folders.
    #[error("{0} has a colon in its name, and so could not stand in PATH: name another folder")]
    Colon(PathBuf),
    /// Not a time factor.
    #[error("a time factor of {0} is not possible: give one from 0.001 to 100000")]
    Speed(f64),
    /// Several servers, or too many GPUs.
    #[error("one server with at most {MOST_GPUS} GPUs can be emulated")]
    TooMany,
}

/// Programs that a machine stands in for; each is the `carma` program under another name.
pub const PROGRAMS: [&str; 4] = ["dcgmi", "nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"];
/// The library that a machine stands in for.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// What Python scripts import to use a machine, and where it lies there.
const CLIENT: (&str, &str) = ("lib/python/carma/emu.py", include_str!("../../../python/carma/emu.py"));

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

    /// Removes the machine in a folder. Processes on it go on until they next look.
    pub fn remove(folder: &Path) -> Result<(), MachineError> {
        let state = folder.join("state");
        fs::remove_file(&state).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => MachineError::Absent(folder.to_owned()),
            _ => MachineError::File { path: state, error },
        })?;
        mps::take_down(folder);
        clear_out(folder);
        Ok(())
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

    /// What a program needs in its environment to meet this machine.
    pub fn environment(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let before = |first: PathBuf, name: &str| {
            let rest = env::var_os(name).unwrap_or_default();
            // Where it stands already, it is not put once more.
            let others = env::split_paths(&rest).filter(|path| !path.as_os_str().is_empty() && *path != first);
            env::join_paths(std::iter::once(first.clone()).chain(others)).unwrap_or_default()
        };
        let paths = [("LD_LIBRARY_PATH", "lib"), ("PATH", "bin"), ("PYTHONPATH", "lib/python")];
        let paths = paths.map(|(name, part)| (name, before(self.folder.join(part), name)));
        [(VARIABLE, self.folder.clone().into())].into_iter().chain(paths).collect()
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
        Ok(self.state.with(act)?)
    }
}

/// Puts the stand-ins for the driver's files into a folder.
fn furnish(folder: &Path, program: Option<&Path>) -> Result<(), MachineError> {
    let library = library()?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| MachineError::File { path, error }
    };
    for part in ["lib/python/carma", "bin"].map(|part| folder.join(part)) {
        fs::create_dir_all(&part).map_err(failed(&part))?;
    }
    let client = folder.join(CLIENT.0);
    fs::write(&client, CLIENT.1).map_err(failed(&client))?;
    let link = |target: &Path, place: PathBuf| {
        let _ = fs::remove_file(&place);
        std::os::unix::fs::symlink(target, &place).map_err(failed(&place))
    };
    // A copy, because the loader knows libraries by their file: two machines in one program need two. Never written over, because it may
    // be loaded.
    let copy = folder.join("lib").join(LIBRARY);
    let beside = copy.with_extension(std::process::id().to_string());
    let copied = fs::copy(&library, &beside).and_then(|_| fs::rename(&beside, &copy));
    copied.inspect_err(|_| drop(fs::remove_file(&beside))).map_err(failed(&copy))?;
    if let Some(program) = program {
        PROGRAMS.into_iter().try_for_each(|name| link(program, folder.join("bin").join(name)))?;
    }
    Ok(())
}

/// Takes them away again; whatever else lies there is not ours.
fn clear_out(folder: &Path) {
    let files =
        PROGRAMS.map(|name| folder.join("bin").join(name)).into_iter().chain([folder.join("lib").join(LIBRARY), folder.join(CLIENT.0)]);
    files.for_each(|file| drop(fs::remove_file(file)));
    let _ = fs::remove_dir_all(folder.join("lib/python/carma/__pycache__"));
    for part in ["bin", "lib/python/carma", "lib/python", "lib", ""] {
        let _ = fs::remove_dir(folder.join(part));
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

/// The stand-in library beside the program that runs: as packages have it, or as cargo leaves it.
fn library() -> Result<PathBuf, MachineError> {
    let program = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/"));
    let candidates = [LIBRARY, "../lib/carma/libnvidia-ml.so.1", "deps/libcarma_emu.so", "libcarma_emu.so", "../deps/libcarma_emu.so"];
    let candidates: Vec<PathBuf> = candidates.into_iter().map(|name| beside.join(name)).collect();
    let found = candidates.iter().find(|path| path.is_file()).cloned();
    found.ok_or(MachineError::NoLibrary(candidates))
}
