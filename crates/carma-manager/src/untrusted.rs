//! Files and folders that a job's user controls. The manager may run as root, so it must not block on them, follow links out of them, or recurse
//! into them.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, renameat, rmdir, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Entries that one call removes. A user who adds files faster than that cannot keep the manager busy for ever.
const MAX_ENTRIES: u64 = 5_000_000;

/// Opens a regular file for reading, in a folder that no user controls. See [`open_below`].
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => open_below(folder, name.as_ref()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Opens a regular file for reading: users may control it, and everything on the way to it from the folder. Links, pipes and other mounts are
/// refused: a user's own file system could delay the open forever. A file with a lease is refused too, because its owner could delay it for 45 s.
pub(crate) fn open_below(folder: &Path, name: &Path) -> io::Result<File> {
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let file = File::from(open_within(&folder, name, OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)?);
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() <= 1 {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file, or has several links"))
    }
}

/// Opens what is below a folder, without following links or entering mounts. Linux before 5.6 cannot refuse mounts.
fn open_within(folder: &OwnedFd, name: impl Arg + Copy, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match openat2(folder, name, flags, Mode::empty(), resolve) {
        // Some containers refuse this call.
        Err(Errno::NOSYS | Errno::PERM) => openat(folder, name, flags, Mode::empty()),
        opened => opened,
    }
}

/// Removes a folder and its content, at any depth: nested folders are moved to the top, so neither the stack nor open files grow with the
/// depth. Links are removed, not followed, and mounts are not entered.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    match openat(CWD, folder, FOLDER, Mode::empty()) {
        // A link or a file in its place.
        Err(Errno::NOTDIR | Errno::LOOP) => return std::fs::remove_file(folder),
        root => Removal { root: root?, moved: 0, left: MAX_ENTRIES }.empty_root()?,
    }
    Ok(rmdir(folder)?)
}

/// Removes the content of a folder likewise.
pub(crate) fn empty_folder(folder: &Path) -> io::Result<()> {
    Removal { root: openat(CWD, folder, FOLDER, Mode::empty())?, moved: 0, left: MAX_ENTRIES }.empty_root()
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

struct Removal {
    root: OwnedFd,
    /// Folders that were moved to the top, for their names.
    moved: u64,
    /// Entries that may still be removed.
    left: u64,
}

impl Removal {
    fn empty_root(mut self) -> io::Result<()> {
        while self.pass()? {}
        Ok(())
    }

    /// Removes the entries at the top. Returns whether folders were moved there meanwhile.
    fn pass(&mut self) -> io::Result<bool> {
        let before = self.moved;
        for entry in Dir::read_from(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            self.count()?;
            if is_dots(name) || removes(&self.root, name)? {
                continue;
            }
            let folder = open_within(&self.root, name, FOLDER)?;
            self.empty(&folder)?;
            drop(folder);
            unlinkat(&self.root, name, AtFlags::REMOVEDIR)?;
        }
        Ok(self.moved > before)
    }

    /// Empties a folder: its own folders go to the top.
    fn empty(&mut self, folder: &OwnedFd) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            self.count()?;
            if is_dots(name) || removes(folder, name)? {
                continue;
            }
            let free_name = self.free_name()?;
            renameat(folder, name, &self.root, free_name)?;
        }
        Ok(())
    }

    /// A name at the top for a folder that is moved there. A user may have taken it: then the move fails, or replaces an empty folder.
    fn free_name(&mut self) -> io::Result<CString> {
        self.moved += 1;
        Ok(CString::new(format!(".removed-{}-{}", std::process::id(), self.moved))?)
    }

    fn count(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("it has too many entries to be removed in one step"))?;
        Ok(())
    }
}

/// Removes a file or an empty folder; false for a folder that is not empty.
fn removes(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    use super::*;

    /// Folders in folders, and a file in each.
    fn nested(top: &Path, depth: usize) {
        let mut folder = openat(CWD, top, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            let file = openat(&folder, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
            drop(file);
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_tree_of_any_depth_is_removed() {
        // In memory: a disk is too slow for this many folders.
        let outer = tempfile::tempdir_in("/dev/shm").unwrap();
        let tree = outer.path().join("tree");
        fs::create_dir_all(tree.join("wide/a")).unwrap();
        fs::create_dir(tree.join("wide/b")).unwrap();
        fs::write(tree.join("wide/b/file"), "").unwrap();
        nested(&tree, 20_000);
        remove_tree(&tree).unwrap();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let (tree, other) = (outer.path().join("tree"), outer.path().join("other"));
        fs::create_dir_all(tree.join("deep/er")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "kept").unwrap();
        for link in ["link", "deep/link", "deep/er/link"] {
            symlink(&other, tree.join(link)).unwrap();
        }
        remove_tree(&tree).unwrap();
        symlink(&other, &tree).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && fs::read_to_string(other.join("file")).unwrap() == "kept");
        assert_eq!(remove_tree(&tree).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
