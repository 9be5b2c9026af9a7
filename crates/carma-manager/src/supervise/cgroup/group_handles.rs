//! How a new process gets into the control groups of its attempt, without waiting.
//!
//! A write to `cgroup.procs` waits until every core has passed through the scheduler: milliseconds, on a busy host tens of them, and one writer after
//! the other. Two ways do not wait: to be forked into a group of version 2, and to write to `tasks` of version 1, which moves one thread.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

use crate::supervise::fork::{Fork, split, split_into};

/// The open entrances of an attempt's control groups.
#[derive(Debug, Default)]
pub(in crate::supervise) struct GroupHandles {
    /// The folder of the group of version 2.
    unified: Option<File>,
    /// The files to which a process with one thread writes "0" to join the other groups.
    files: Vec<File>,
}

impl GroupHandles {
    pub(super) fn open<'a>(folders: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        let mut group_handles = Self::default();
        for folder in folders {
            match OpenOptions::new().write(true).open(folder.join("tasks")) {
                // Only groups of version 1 have it.
                Err(error) if error.kind() == ErrorKind::NotFound => group_handles.unified = Some(File::open(folder)?),
                file => group_handles.files.push(file?),
            }
        }
        Ok(group_handles)
    }

    /// Forks a process into the group of version 2. It has to join the others.
    pub(in crate::supervise) fn fork(&mut self) -> io::Result<Fork> {
        let Some(group) = self.unified.take() else { return split() };
        // Kernels before 5.7 and some containers cannot do this.
        split_into(group.as_fd()).or_else(|_| {
            let procs = rustix::fs::openat(
                &group,
                "cgroup.procs",
                rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            );
            self.files.extend(procs.map(File::from));
            split()
        })
    }

    /// Lets this process join, as far as allowed.
    pub(in crate::supervise) fn join(&self) {
        for mut file in &self.files {
            let _ = file.write_all(b"0");
        }
    }
}
