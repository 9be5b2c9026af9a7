//! Small files beside the store, with state that is useful after a restart but not needed.

use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a file; the default where it is missing or damaged.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Writes a file, completely or not at all.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(value)?)?;
    fs::rename(new, path)
}
