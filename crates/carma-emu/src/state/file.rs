//! The state's file: made, mapped, locked.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytemuck::Zeroable;
use memmap2::MmapMut;
use thiserror::Error;

use super::records::{CallFault, ContextRecord, EventRecord, GpuRecord, Header, LAYOUT, MAGIC};
use super::{CONTEXTS, EVENTS, FAULTS, State, clock};

/// What is wrong with a state.
#[derive(Debug, Error)]
pub enum StateError {
    /// The file is not there or cannot be used.
    #[error("cannot use the emulated GPUs' state {path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Made by another version.
    #[error("the emulated GPUs' state {path} was made by another version of carma: run `carma emu down` and `carma emu up` again")]
    Layout {
        /// Which.
        path: PathBuf,
    },
}

/// A machine's state, shared with all processes that use it.
#[derive(Debug)]
pub struct SharedState {
    path: PathBuf,
    mapped: Mutex<Mapped>,
}

/// A file in memory, and which file it is.
#[derive(Debug)]
struct Mapped {
    map: MmapMut,
    file: u64,
}

fn size(gpus: usize) -> usize {
    size_of::<Header>()
        + gpus * size_of::<GpuRecord>()
        + CONTEXTS * size_of::<ContextRecord>()
        + EVENTS * size_of::<EventRecord>()
        + FAULTS * size_of::<CallFault>()
}

impl SharedState {
    /// Makes a state with these GPUs, or fails where there is one.
    pub fn create(path: &Path, gpus: &[GpuRecord], speed: f64) -> Result<Self, StateError> {
        let failed = |error| StateError::File { path: path.to_owned(), error };
        let header = Header {
            magic: MAGIC,
            layout: LAYOUT,
            gpus: gpus.len() as u32,
            speed,
            born: clock(),
            host: 1.0,
            changed: 1,
            ..Header::zeroed()
        };
        let whole = size(gpus.len());
        // Nobody may see it half made: it gets its name when it is whole.
        let unfinished = path.with_extension(format!("{}", std::process::id()));
        let write = || {
            let file = File::create_new(&unfinished)?;
            file.set_len(whole as u64)?;
            // Like a GPU's device file: jobs of any user may use it.
            file.set_permissions(Permissions::from_mode(0o666))?;
            let mut map = map(&file)?;
            let (head, rest) = map.split_at_mut(size_of::<Header>());
            head.copy_from_slice(bytemuck::bytes_of(&header));
            rest[..size_of_val(gpus)].copy_from_slice(bytemuck::cast_slice(gpus));
            std::fs::hard_link(&unfinished, path)
        };
        let written = write();
        let removed = std::fs::remove_file(&unfinished);
        written.and(removed).map_err(failed)?;
        Self::open(path)
    }

    /// Opens one that is there.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        Ok(Self { path: path.to_owned(), mapped: Mutex::new(mapped(path)?) })
    }

    /// Looks at the state, or changes it, with everything counted up to now and processes that are gone taken off. Nobody else is at it meanwhile.
    pub fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> Result<R, StateError> {
        let failed = |error| StateError::File { path: self.path.clone(), error };
        // The kernel gives the lock back when its holder dies, wherever it was. Opened anew each time, because a lock belongs to an open
        // file: threads and forked children must not share it.
        let lock = File::open(&self.path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut here = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        // The machine was taken down and put up again: what we have is of the old one.
        if here.file != lock.metadata().map_err(failed)?.ino() {
            *here = mapped(&self.path)?;
        }
        let mut state = view(&mut here.map);
        state.catch_up(clock());
        let result = act(&mut state);
        state.settle();
        Ok(result)
    }
}

/// A state that was made by this version.
fn mapped(path: &Path) -> Result<Mapped, StateError> {
    let failed = |error| StateError::File { path: path.to_owned(), error };
    let file = File::options().read(true).write(true).open(path).map_err(failed)?;
    let map = map(&file).map_err(failed)?;
    let fits = map.len() >= size_of::<Header>() && {
        let header: &Header = bytemuck::from_bytes(&map[..size_of::<Header>()]);
        (header.magic, header.layout) == (MAGIC, LAYOUT) && map.len() == size(header.gpus as usize)
    };
    if fits { Ok(Mapped { map, file: file.metadata().map_err(failed)?.ino() }) } else { Err(StateError::Layout { path: path.to_owned() }) }
}

fn map(file: &File) -> io::Result<MmapMut> {
    // SAFETY: the file is shared with processes of this program only, which change it under a lock and never cut it.
    #[expect(unsafe_code, reason = "memory shared between processes cannot be had otherwise")]
    unsafe {
        MmapMut::map_mut(file)
    }
}

fn view(bytes: &mut [u8]) -> State<'_> {
    let (header, rest) = bytes.split_at_mut(size_of::<Header>());
    let header: &mut Header = bytemuck::from_bytes_mut(header);
    let (gpus, rest) = rest.split_at_mut(header.gpus as usize * size_of::<GpuRecord>());
    let (contexts, rest) = rest.split_at_mut(CONTEXTS * size_of::<ContextRecord>());
    let (events, faults) = rest.split_at_mut(EVENTS * size_of::<EventRecord>());
    State {
        header,
        gpus: bytemuck::cast_slice_mut(gpus),
        table: bytemuck::cast_slice_mut(contexts),
        ring: bytemuck::cast_slice_mut(events),
        faults: bytemuck::cast_slice_mut(faults),
    }
}
