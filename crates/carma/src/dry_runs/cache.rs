//! The events of earlier dry runs, in the cache folder of a user.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::given::Given;
use super::look::Look;

/// Dry runs that are kept. The ones that were not used for longest go first.
const MOST: usize = 100;
/// The largest recording that is kept, in bytes.
const LARGEST: u64 = 64 << 20;

/// Earlier dry runs, one file each: a line of what the script looked at, then its events.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// What the recorder says that a script looked at.
#[derive(Debug, Deserialize)]
struct Inputs {
    /// It looked at nothing else.
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

    /// The events of an earlier dry run that was given the same, if all that its script looked at is as it was.
    pub(crate) fn find(&self, given: &Given) -> Option<Vec<u8>> {
        let file = self.folder.join(given.key());
        let mut content = fs::read(&file).ok()?;
        let line = content.iter().position(|byte| *byte == b'\n')?;
        let looks: Vec<Look> = serde_json::from_slice(&content[..line]).ok()?;
        if !looks.iter().all(Look::still_holds) {
            return None;
        }
        // The date of its last use; without it, it only goes sooner.
        let _ = File::options().append(true).open(&file).and_then(|file| file.set_modified(SystemTime::now()));
        content.drain(..=line);
        Some(content)
    }

    /// Keeps the events of a dry run that began then. Does nothing if they may differ the next time.
    pub(crate) fn keep(&self, given: &Given, inputs: &Path, events: &Path, began: SystemTime) -> io::Result<()> {
        let Some(looks) = looks(inputs, began)? else { return Ok(()) };
        if fs::metadata(events)?.len() > LARGEST {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, &looks)?;
        file.write_all(b"\n")?;
        io::copy(&mut File::open(events)?, &mut file)?;
        file.persist(self.folder.join(given.key()))?;
        self.remove_oldest()
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let entries = fs::read_dir(&self.folder)?.flatten();
        let mut files: Vec<_> = entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
        files.sort_unstable();
        for (_, file) in files.iter().take(files.len().saturating_sub(MOST)) {
            fs::remove_file(file)?;
        }
        Ok(())
    }
}

/// What was found at all inputs; `None` if that is not known, or may have changed meanwhile.
fn looks(inputs: &Path, began: SystemTime) -> io::Result<Option<Vec<Look>>> {
    let Inputs { complete, files, folders, imports } = serde_json::from_slice(&fs::read(inputs)?)?;
    if !complete {
        return Ok(None);
    }
    let files = files.into_iter().map(|path| Look::at_file(path, began));
    let folders = folders.into_iter().map(|path| Look::at_folder(path, began));
    Ok(files.chain(folders).chain(imports.into_iter().map(|path| Some(Look::for_modules(path)))).collect())
}

#[cfg(test)]
mod tests;
