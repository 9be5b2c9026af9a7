//! The stand-ins for the driver's files in a machine's folder.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::{LIBRARY, MachineError, PROGRAMS};

/// The Python module of a machine, and its path there.
const CLIENT: (&str, &str) = ("lib/python/carma/emu.py", include_str!("../../../../python/carma/emu.py"));

/// Puts the stand-ins for the driver's files into a folder.
pub(super) fn create_files(folder: &Path, program: Option<&Path>) -> Result<(), MachineError> {
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
    // A copy, because the loader identifies libraries by their file: two machines in one program need two. Never overwritten,
    // because it may be loaded.
    let copy = folder.join("lib").join(LIBRARY);
    let beside = copy.with_extension(std::process::id().to_string());
    let copied = fs::copy(&library, &beside).and_then(|_| fs::rename(&beside, &copy));
    copied.inspect_err(|_| drop(fs::remove_file(&beside))).map_err(failed(&copy))?;
    if let Some(program) = program {
        PROGRAMS.into_iter().try_for_each(|name| link(program, folder.join("bin").join(name)))?;
    }
    Ok(())
}

/// Removes them; other files there are not ours.
pub(super) fn remove_files(folder: &Path) {
    let files =
        PROGRAMS.map(|name| folder.join("bin").join(name)).into_iter().chain([folder.join("lib").join(LIBRARY), folder.join(CLIENT.0)]);
    files.for_each(|file| drop(fs::remove_file(file)));
    let _ = fs::remove_dir_all(folder.join("lib/python/carma/__pycache__"));
    for part in ["bin", "lib/python/carma", "lib/python", "lib", ""] {
        let _ = fs::remove_dir(folder.join(part));
    }
}

/// The emulated library beside the running program: as in packages, or as in cargo's folder.
fn library() -> Result<PathBuf, MachineError> {
    let program = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/"));
    let candidates = [LIBRARY, "../lib/carma/libnvidia-ml.so.1", "deps/libcarma_emu.so", "libcarma_emu.so", "../deps/libcarma_emu.so"];
    let candidates: Vec<PathBuf> = candidates.into_iter().map(|name| beside.join(name)).collect();
    let found = candidates.iter().find(|path| path.is_file()).cloned();
    found.ok_or(MachineError::NoLibrary(candidates))
}
