//! The events of earlier dry runs, in the cache folder of a user.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::input::InputState;
use super::request::Request;

/// Dry runs that are kept. The ones that were not used for longest go first.
const MAX_ENTRIES: usize = 100;
/// The largest recording that is kept, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Earlier dry runs, one file each: a line with the inputs of the script, then its events.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// The inputs of a script, as the recorder reports them.
#[derive(Debug, Deserialize)]
struct Inputs {
    /// There were no other inputs.
    complete: bool,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    imports: Vec<PathBuf>,
}

impl Cache {
    /// The cache of the user: `carma/dry-runs` in `$XDG_CACHE_HOME` or `~/.cache`. `None` for users without a home.
    pub(crate) fn of_user() -> Option<Self> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self { folder: caches.join("carma/dry-runs") })
    }

    /// The events of an earlier equal dry run, if the inputs of its script are unchanged.
    pub(crate) fn find(&self, request: &Request) -> Option<Vec<u8>> {
        let file = self.folder.join(request.key());
        let mut content = fs::read(&file).ok()?;
        let line = content.iter().position(|byte| *byte == b'\n')?;
        let states: Vec<InputState> = serde_json::from_slice(&content[..line]).ok()?;
        if !states.iter().all(InputState::is_unchanged) {
            return None;
        }
        // The date of its last use; without it, it only goes sooner.
        let _ = File::options().append(true).open(&file).and_then(|file| file.set_modified(SystemTime::now()));
        content.drain(..=line);
        Some(content)
    }

    /// Keeps the events of a dry run that began then. Does nothing if they may differ the next time.
    pub(crate) fn keep(&self, request: &Request, inputs: &Path, events: &Path, began: SystemTime) -> io::Result<()> {
        let Some(states) = states(inputs, began)? else { return Ok(()) };
        if fs::metadata(events)?.len() > MAX_BYTES {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, &states)?;
        file.write_all(b"\n")?;
        io::copy(&mut File::open(events)?, &mut file)?;
        file.persist(self.folder.join(request.key()))?;
        self.remove_oldest()
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let entries = fs::read_dir(&self.folder)?.flatten();
        let mut files: Vec<_> = entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
        files.sort_unstable();
        for (_, file) in files.iter().take(files.len().saturating_sub(MAX_ENTRIES)) {
            fs::remove_file(file)?;
        }
        Ok(())
    }
}

/// What was found at all inputs; `None` if that is not known, or may have changed meanwhile.
fn states(inputs: &Path, began: SystemTime) -> io::Result<Option<Vec<InputState>>> {
    let Inputs { complete, files, folders, imports } = serde_json::from_slice(&fs::read(inputs)?)?;
    if !complete {
        return Ok(None);
    }
    let files = files.into_iter().map(|path| InputState::of_file(path, began));
    let folders = folders.into_iter().map(|path| InputState::of_folder(path, began));
    Ok(files.chain(folders).chain(imports.into_iter().map(|path| Some(InputState::of_modules(path)))).collect())
}

#[cfg(test)]
mod tests;
