//! The device files of GPUs, `/dev/nvidia0` and so on. NVML can list GPUs whose files this process may not open.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Whether this process may open a GPU's device file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// It may, or it is unknown: emulated GPUs have no files, and those of a GPU that fell off the bus fail in other ways.
    Granted,
    /// The kernel refuses, because of the file's rights or of a device cgroup.
    Refused,
}

/// Tries to open the device file of the GPU with this minor number. Device cgroups show only in an attempt to open it.
pub fn open_device_file(minor: u32) -> FileAccess {
    open(Path::new(&format!("/dev/nvidia{minor}")))
}

fn open(path: &Path) -> FileAccess {
    // CUDA both reads and writes it. Without blocking, newer drivers do not initialize the GPU before they answer.
    file_access(rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).map(drop))
}

fn file_access(opened: Result<(), Errno>) -> FileAccess {
    match opened {
        Err(Errno::ACCESS | Errno::PERM) => FileAccess::Refused,
        _ => FileAccess::Granted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_permission_error_excludes_a_gpu() {
        for error in [Errno::NOENT, Errno::IO, Errno::NXIO, Errno::NODEV, Errno::BUSY, Errno::MFILE] {
            assert_eq!(file_access(Err(error)), FileAccess::Granted, "{error}");
        }
        for error in [Errno::ACCESS, Errno::PERM] {
            assert_eq!(file_access(Err(error)), FileAccess::Refused, "{error}");
        }
        assert_eq!(open(Path::new("/nonexistent/nvidia0")), FileAccess::Granted);
        assert_eq!(open(Path::new("/dev/null")), FileAccess::Granted);
    }

    #[test]
    fn a_file_without_rights_is_refused_unless_root_asks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        rustix::fs::chmod(file.path(), Mode::empty()).unwrap();
        let expected = if rustix::process::geteuid().is_root() { FileAccess::Granted } else { FileAccess::Refused };
        assert_eq!(open(file.path()), expected);
    }
}
