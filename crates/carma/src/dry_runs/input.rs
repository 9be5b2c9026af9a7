//! The inputs of a script as it found them, and whether they are unchanged.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Larger files are data: they are taken for changed when their size or date changes, without reading the content.
const MAX_HASHED_BYTES: u64 = 1 << 20;

/// An input of a script: a path and what was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InputState {
    path: PathBuf,
    found: Found,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Found {
    Nothing,
    Folder,
    File {
        size: u64,
        /// When its content and its entry last changed: seconds and nanoseconds.
        changed: [(i64, i64); 2],
        /// Of a small file: it may be written again with the same content.
        digest: Option<String>,
    },
    /// The names in a folder.
    Names(String),
    /// The modules and packages that Python can import from a folder.
    Modules(String),
}

impl InputState {
    /// The state of a file; `None` if it changed after the script had begun, so that the script may have seen something else.
    pub(super) fn of_file(path: PathBuf, began: SystemTime) -> Option<Self> {
        let found = match fs::metadata(&path) {
            Err(_) => Found::Nothing,
            Ok(metadata) if metadata.is_dir() => Found::Folder,
            Ok(metadata) => {
                is_older(&metadata, began).then_some(())?;
                let digest = (metadata.len() <= MAX_HASHED_BYTES).then(|| digest(&path).ok()).flatten();
                Found::File { size: metadata.len(), changed: dates(&metadata), digest }
            }
        };
        Some(Self { path, found })
    }

    /// The names in a folder, likewise.
    pub(super) fn of_folder(path: PathBuf, began: SystemTime) -> Option<Self> {
        let found = match names(&path) {
            None => Found::Nothing,
            Some(names) => {
                fs::metadata(&path).ok().filter(|metadata| is_older(metadata, began))?;
                Found::Names(names)
            }
        };
        Some(Self { path, found })
    }

    /// The modules in a folder.
    pub(super) fn of_modules(path: PathBuf) -> Self {
        let found = modules(&path).map_or(Found::Nothing, Found::Modules);
        Self { path, found }
    }

    /// Whether the same is there now.
    pub(super) fn is_unchanged(&self) -> bool {
        let metadata = fs::metadata(&self.path);
        match (&self.found, metadata) {
            (Found::Nothing, metadata) => metadata.is_err(),
            (_, Err(_)) => false,
            (Found::Folder, Ok(metadata)) => metadata.is_dir(),
            (Found::File { size, changed, digest: known }, Ok(metadata)) => {
                let untouched = || dates(&metadata) == *changed;
                let same_content = || known.is_some() && digest(&self.path).ok() == *known;
                metadata.len() == *size && !metadata.is_dir() && (untouched() || same_content())
            }
            (Found::Names(known), Ok(_)) => names(&self.path).as_ref() == Some(known),
            (Found::Modules(known), Ok(_)) => modules(&self.path).as_ref() == Some(known),
        }
    }
}

fn is_older(metadata: &Metadata, than: SystemTime) -> bool {
    metadata.modified().is_ok_and(|modified| modified < than)
}

fn dates(metadata: &Metadata) -> [(i64, i64); 2] {
    [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())]
}

fn digest(path: &Path) -> io::Result<String> {
    Ok(format!("{:x}", Sha256::digest(fs::read(path)?)))
}

fn names(folder: &Path) -> Option<String> {
    listed(folder, |_| true)
}

fn modules(folder: &Path) -> Option<String> {
    listed(folder, |entry| match entry.extension().and_then(|extension| extension.to_str()) {
        Some("py" | "so" | "pth" | "dist-info" | "egg-info" | "egg-link") => true,
        _ => entry.join("__init__.py").exists(),
    })
}

/// A digest of the names in a folder that count; `None`: it cannot be listed.
fn listed(folder: &Path, counts: impl Fn(&Path) -> bool) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut names: Vec<OsString> = entries.filter(|entry| counts(&entry.path())).map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    let mut hash = Sha256::new();
    for name in names {
        hash.update(name.as_bytes());
        hash.update([0]);
    }
    Some(format!("{:x}", hash.finalize()))
}
