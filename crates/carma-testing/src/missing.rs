//! Why a test cannot run on a machine.

use std::fmt;
use std::path::PathBuf;

/// A requirement of a test that the machine lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// `CARMA_DATA` names no folder with the published measurements.
    PublishedData,
    /// A program that `make test` installs.
    Program(String),
    /// Packages of the Python package index that `make clients` installs in this folder.
    PythonClients(PathBuf),
    /// Programs and headers of NVIDIA that `make nvidia` downloads into this folder.
    NvidiaPrograms(PathBuf),
    /// The tests do not run as root.
    Root,
    /// Other users cannot execute this program, because it lies in a private folder.
    SharedProgram(PathBuf),
    /// This machine does not permit mounts in a namespace.
    Mounts,
    /// This machine does not permit control groups with limits.
    ControlGroups,
    /// This clone does not have the commit of a release.
    Commit(String),
    /// The test needs a machine without GPUs, and this one has some, real or emulated.
    AbsenceOfGpus,
}

impl Missing {
    /// Whether a CI machine may lack it: one that runs as root and installs packages of Debian, `PyPI`, npm and crates.io, without GPUs, Docker
    /// and systemd, in a container and a clone of its choice.
    pub const fn may_lack_in_ci(&self) -> bool {
        match self {
            Self::PublishedData | Self::SharedProgram(_) | Self::Mounts | Self::ControlGroups | Self::Commit(_) => true,
            Self::Program(_) | Self::PythonClients(_) | Self::NvidiaPrograms(_) | Self::Root | Self::AbsenceOfGpus => false,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PublishedData => f.write_str("CARMA_DATA names no folder with published measurements"),
            Self::Program(program) => write!(f, "{program} is not installed"),
            Self::PythonClients(folder) => write!(f, "{} has no nvitop (make clients)", folder.display()),
            Self::NvidiaPrograms(folder) => write!(f, "{} has no programs of NVIDIA (make nvidia)", folder.display()),
            Self::Root => f.write_str("needs root"),
            Self::SharedProgram(program) => write!(f, "other users cannot execute {}", program.display()),
            Self::Mounts => f.write_str("this machine does not permit mounts in a namespace"),
            Self::ControlGroups => f.write_str("this machine does not permit control groups with limits"),
            Self::Commit(version) => write!(f, "this clone does not have the commit of {version}"),
            Self::AbsenceOfGpus => f.write_str("this machine has GPUs, real or emulated"),
        }
    }
}
