//! Small files of the engine's own beside the store: what is good to have after a restart, and can be done without.

use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What was saved; without the file, or with one that is damaged, nothing.
pub(super) fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Saves it, whole or not at all.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(value)?)?;
    fs::rename(new, path)
}
