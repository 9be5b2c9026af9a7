//! The state's file: made, mapped, locked.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, TryLockError};

use bytemuck::Zeroable;
use memmap2::MmapMut;
use thiserror::Error;

use super::image::{next, size, view};
use super::records::{FileHeader, GpuRecord, Header, LAYOUT, MAGIC};
use super::{State, clock};

/// Errors of a state file.
#[derive(Debug, Error)]
pub enum StateError {
    /// The file is not there or cannot be used.
    #[error("cannot use the state {path} of the emulated GPUs: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Made by another version.
    #[error("the state {path} of the emulated GPUs has another version: run `carma emu down` and `carma emu up` again")]
    Layout {
        /// The file.
        path: PathBuf,
    },
}

/// A machine's state, shared with all processes that use it.
///
/// The file holds two images of it. A change is made in the inactive one, which then becomes active: a process that is killed meanwhile leaves
/// the state unchanged.
#[derive(Debug)]
pub struct SharedState {
    path: PathBuf,
    mapped: Mutex<Mapped>,
}

/// A mapped file, and its identity.
#[derive(Debug)]
struct Mapped {
    map: MmapMut,
    file: u64,
    gpus: usize,
}

/// The lock of a state, until this is dropped.
struct Lock(File);

impl Lock {
    /// Waits for it. The kernel gives it back when its holder dies, wherever it was. The file is opened again each time, because a lock belongs
    /// to an open file, and threads must not share it.
    fn take(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        loop {
            match file.lock() {
                // Interrupted by a signal.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => return locked.map(|()| Self(file)),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked child may have it open too.
        let _ = self.0.unlock();
    }
}

impl SharedState {
    /// Makes a state with these GPUs, or fails if it exists.
    pub fn create(path: &Path, gpus: &[GpuRecord], speed: f64) -> Result<Self, StateError> {
        let lead = FileHeader { magic: MAGIC, layout: LAYOUT, gpus: gpus.len() as u32, current: 0, events: 0 };
        let header = Header { speed, born: clock(), host: 1.0, changed: 1, ..Header::zeroed() };
        let mut image = vec![0; size(gpus.len())];
        let state = view(&mut image, gpus.len());
        *state.header = header;
        state.gpus.copy_from_slice(gpus);
        // It gets its name when it is complete, so that no process sees a part of it. Written out, so that its memory is allocated: mapped memory
        // that is not available would kill the process that touches it.
        let unfinished = path.with_extension(format!("{}", std::process::id()));
        let write = || {
            let mut file = File::create_new(&unfinished)?;
            file.write_all(bytemuck::bytes_of(&lead))?;
            file.write_all(&image)?;
            file.write_all(&image)?;
            // Like a GPU's device file: jobs of any user may use it.
            file.set_permissions(Permissions::from_mode(0o666))?;
            std::fs::hard_link(&unfinished, path)
        };
        let written = write();
        let removed = std::fs::remove_file(&unfinished);
        written.and(removed).map_err(|error| StateError::File { path: path.to_owned(), error })?;
        Self::open(path)
    }

    /// Opens an existing one.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        Ok(Self { path: path.to_owned(), mapped: Mutex::new(mapped(path)?) })
    }

    /// Reads or changes the state under its lock, with time advanced to now and ended processes removed.
    pub fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> Result<R, StateError> {
        let failed = |error| StateError::File { path: self.path.clone(), error };
        let lock = Lock::take(&self.path).map_err(failed)?;
        let found = lock.0.metadata().map_err(failed)?;
        match self.mapped.try_lock() {
            Ok(mut here) => self.at(&mut here, &found, act),
            Err(TryLockError::Poisoned(here)) => self.at(&mut here.into_inner(), &found, act),
            // No other thread can hold it: this is a forked child, and the holder is a thread of the parent.
            Err(TryLockError::WouldBlock) => self.at(&mut mapped(&self.path)?, &found, act),
        }
    }

    /// Driver events so far, without locking: a hint whether to read the state. Unset if this process holds the lock.
    pub fn events(&self) -> Option<u64> {
        let here = self.mapped.try_lock().ok()?;
        here.map.get(..size_of::<FileHeader>()).map(|lead| bytemuck::pod_read_unaligned::<FileHeader>(lead).events)
    }

    fn at<R>(&self, here: &mut Mapped, found: &Metadata, act: impl FnOnce(&mut State<'_>) -> R) -> Result<R, StateError> {
        // The machine was removed and made again, or its file was truncated: our mapping is of the old one.
        if here.file != found.ino() || here.map.len() as u64 != found.len() {
            *here = mapped(&self.path)?;
        }
        let (lead, images) = here.map.split_at_mut(size_of::<FileHeader>());
        let lead: &mut FileHeader = bytemuck::from_bytes_mut(lead);
        let mut state = next(images, lead.current, here.gpus);
        state.catch_up(clock());
        let result = act(&mut state);
        state.settle();
        lead.events = state.header.events;
        // All of it must be written before it becomes active.
        fence(Ordering::SeqCst);
        lead.current ^= 1;
        Ok(result)
    }
}

/// A state that was made by this version.
fn mapped(path: &Path) -> Result<Mapped, StateError> {
    let failed = |error| StateError::File { path: path.to_owned(), error };
    let file = File::options().read(true).write(true).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let wrong = || StateError::Layout { path: path.to_owned() };
    // An empty file cannot be mapped.
    let map = if found.len() == 0 { return Err(wrong()) } else { map(&file).map_err(failed)? };
    let lead: FileHeader = bytemuck::pod_read_unaligned(map.get(..size_of::<FileHeader>()).ok_or_else(wrong)?);
    let gpus = lead.gpus as usize;
    let fits = (lead.magic, lead.layout) == (MAGIC, LAYOUT) && map.len() == size_of::<FileHeader>() + 2 * size(gpus);
    if fits { Ok(Mapped { map, file: found.ino(), gpus }) } else { Err(wrong()) }
}

fn map(file: &File) -> io::Result<MmapMut> {
    // SAFETY: the file is shared with processes of this program only, which change it under a lock and never cut it.
    #[expect(unsafe_code, reason = "memory shared between processes cannot be had otherwise")]
    unsafe {
        MmapMut::map_mut(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::state::{ContextKind, ContextRecord, started};

    fn state(folder: &Path) -> SharedState {
        SharedState::create(&folder.join("state"), &[GpuRecord::zeroed(); 2], 1.0).unwrap()
    }

    fn own(gpu: u32) -> ContextRecord {
        ContextRecord { pid: std::process::id(), gpu, ..ContextRecord::new(ContextKind::Compute) }
    }

    #[test]
    fn unfinished_changes_are_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let (state, born) = (state(folder.path()), started(std::process::id()).unwrap());
        state.with(|state| state.attach(own(0), born)).unwrap().unwrap();
        let unfinished = || {
            state.with(|state| {
                state.attach(own(1), born).unwrap();
                state.contexts_mut()[0].bytes = 7;
                state.gpus[0].lost = 1;
                panic!("killed");
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(unfinished)).is_err());
        let seen = |state: &mut State<'_>| (state.contexts().len(), state.contexts()[0].bytes, state.gpus[0].lost);
        assert_eq!(state.with(seen).unwrap(), (1, 0, 0));
    }

    #[test]
    fn truncated_files_and_other_versions_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (state, file) = (state(folder.path()), folder.path().join("state"));
        let whole = fs::read(&file).unwrap();
        for length in [0, 5, 4096, whole.len() - 1] {
            File::options().write(true).open(&file).unwrap().set_len(length as u64).unwrap();
            assert!(matches!(state.with(|_| ()), Err(StateError::Layout { .. })), "{length}");
        }
        let mut other = whole.clone();
        other[8] ^= 1;
        fs::write(&file, other).unwrap();
        assert!(matches!(SharedState::open(&file), Err(StateError::Layout { .. })));
        fs::write(&file, whole).unwrap();
        state.with(|_| ()).unwrap();
    }

    #[test]
    fn foreign_data_in_the_state_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let (state, born) = (state(folder.path()), started(std::process::id()).unwrap());
        state.with(|state| state.attach(own(1), born)).unwrap().unwrap();
        let damage = |state: &mut State<'_>| {
            for context in [own(77), ContextRecord { instance: 7, ..own(0) }] {
                state.attach(context, born).unwrap();
            }
            state.header.changed = 0;
        };
        state.with(damage).unwrap();
        assert_eq!(state.with(|state| state.contexts().iter().map(|context| context.gpu).collect::<Vec<_>>()).unwrap(), [1]);
        state.with(|state| (state.header.contexts, state.header.changed) = (1 << 30, 0)).unwrap();
        state.with(|_| ()).unwrap();
    }
}
