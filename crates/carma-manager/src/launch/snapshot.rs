//! A copy of a git work tree, so that later edits do not change a job that waits.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// A copy of a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The requested directory in the copy.
    pub directory: PathBuf,
    /// How many files it has.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Git did not answer.
    #[error("git cannot list the files of {directory}: {message}")]
    Git {
        /// The folder in question.
        directory: PathBuf,
        /// Its message.
        message: String,
    },
    /// It is too large.
    #[error(
        "the work tree has {bytes} bytes, and at most {limit} are copied; the largest file is {largest} ({size} bytes): add data files to .gitignore"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// The largest file.
        largest: PathBuf,
        /// Its size.
        size: u64,
    },
    /// A file could not be copied.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Copies the work tree around a directory to a new folder: tracked files, and others that are not ignored. Must run with the rights of the tree's
/// owner, because git obeys the tree's own configuration.
pub fn snapshot(directory: &Path, target: &Path, limit: u64) -> Result<Snapshot, SnapshotError> {
    let top = git(directory, &["rev-parse", "--show-toplevel"])?;
    let top = PathBuf::from(std::ffi::OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top)));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SnapshotError::File { path, source }
    };
    let files = listed(&top)?;
    let bytes = files.iter().map(|(_, size)| size).sum();
    if let Some((largest, size)) = files.iter().max_by_key(|(_, size)| *size).filter(|_| bytes > limit) {
        return Err(SnapshotError::TooLarge { bytes, limit, largest: largest.clone(), size: *size });
    }
    fs::create_dir(target).map_err(failed(target))?;
    for (name, _) in &files {
        copy(&top.join(name), &target.join(name)).map_err(failed(name))?;
    }
    let inside = directory.canonicalize().map_err(failed(directory))?;
    let directory = target.join(inside.strip_prefix(&top).unwrap_or(Path::new("")));
    // Git does not track empty directories.
    fs::create_dir_all(&directory).map_err(failed(&directory))?;
    Ok(Snapshot { directory, files: files.len(), bytes })
}

/// The files of a tree and its submodules, with their sizes.
fn listed(top: &Path) -> Result<Vec<(PathBuf, u64)>, SnapshotError> {
    let names = git(top, &["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])?;
    let mut files = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        match fs::symlink_metadata(top.join(name)) {
            Ok(data) if data.is_dir() => files.extend(listed(&top.join(name))?.into_iter().map(|(below, size)| (name.join(below), size))),
            Ok(data) if data.is_file() || data.is_symlink() => files.push((name.to_owned(), data.len())),
            // Skips tracked files that were deleted, and pipes, which cannot be copied.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(files)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    if from.is_symlink() { symlink(fs::read_link(from)?, to) } else { fs::copy(from, to).map(drop) }
}

fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, SnapshotError> {
    let failed = |message: String| SnapshotError::Git { directory: directory.to_owned(), message };
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        git(folder, &["init", "--quiet"]).unwrap();
        for (name, content) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn a_copy_has_what_git_would_not_ignore_as_it_is_now() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        tree(
            &project,
            &[("train.py", "old"), ("gone.py", ""), ("-n 'a b'\n.py", "odd"), ("data/big.bin", "xxxx"), (".gitignore", "data/\n")],
        );
        git(&project, &["add", "--all"]).unwrap();
        fs::write(project.join("train.py"), "edited").unwrap();
        fs::remove_file(project.join("gone.py")).unwrap();
        fs::create_dir_all(project.join("source/empty")).unwrap();
        fs::write(project.join("source/new.py"), "new").unwrap();
        symlink("train.py", project.join("link")).unwrap();
        tree(&project.join("library"), &[("inner.py", "inner")]);
        let target = folder.path().join("copy");
        let copy = snapshot(&project.join("source/empty"), &target, 1 << 20).unwrap();
        assert_eq!(copy.directory, target.join("source/empty"));
        fs::write(project.join("train.py"), "edited later").unwrap();
        let read = |name: &str| fs::read_to_string(target.join(name)).ok();
        assert_eq!(read("train.py").as_deref(), Some("edited"));
        assert_eq!(read("link").as_deref(), Some("edited"), "the link leads to the copy");
        assert_eq!(["-n 'a b'\n.py", "source/new.py", "library/inner.py"].map(|name| read(name).unwrap()), ["odd", "new", "inner"]);
        assert_eq!([read("gone.py"), read("data/big.bin")], [None, None]);
        assert!(copy.directory.is_dir() && copy.files == 6, "{copy:?}");
    }

    #[test]
    fn errors_are_reported_before_any_copy() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        tree(&project, &[("a", "aaa"), ("weights.bin", "0123456789")]);
        let target = folder.path().join("copy");
        assert_eq!(
            snapshot(&project, &target, 12).unwrap_err().to_string(),
            "the work tree has 13 bytes, and at most 12 are copied; the largest file is weights.bin (10 bytes): add data files to .gitignore"
        );
        let plain = folder.path().join("plain");
        fs::create_dir(&plain).unwrap();
        let message = snapshot(&plain, &target, 12).unwrap_err().to_string();
        assert!(message.contains("/plain: ") && message.contains("not a git repository"), "{message}");
        assert!(!target.exists());
    }
}
