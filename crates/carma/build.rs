//! Lists the Python package's files, so that the one binary carries them.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    println!("cargo:rerun-if-changed={}", root.join("carma").display());
    let mut files = Vec::new();
    collect(&root.join("carma"), &mut files);
    files.sort();
    let rows: Vec<String> = files
        .iter()
        .filter_map(|file| Some((file.strip_prefix(&root).ok()?.to_str()?, file.to_str()?)))
        .map(|(name, path)| format!("    ({name:?}, include_str!({path:?})),"))
        .collect();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("python_package.rs");
    if let Err(error) = fs::write(&out, format!("&[\n{}\n]", rows.join("\n"))) {
        panic!("cannot write {}: {error}", out.display());
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}
