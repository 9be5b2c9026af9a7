//! Xid errors: their numbers, and their meaning for jobs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of an Xid error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Xid(pub u64);

/// The cause of an Xid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Most likely the program on the GPU: the GPU continues.
    Program,
    /// The GPU or its memory: no new jobs should be placed on it.
    Gpu,
    /// The GPU is gone.
    Lost,
    /// The cause is unclear; it is only recorded.
    Unclear,
}

/// From NVIDIA's catalogue of Xid errors: those that occur in practice.
const KNOWN: [(u64, Blame, &str); 25] = [
    (13, Blame::Program, "graphics engine exception, often an access out of bounds"),
    (31, Blame::Program, "memory page fault, an access to an illegal address"),
    (32, Blame::Program, "invalid or corrupted push buffer stream"),
    (43, Blame::Program, "the GPU stopped processing for this program"),
    (45, Blame::Program, "work was removed because its program ended or failed"),
    (48, Blame::Gpu, "double bit ECC error"),
    (61, Blame::Gpu, "internal micro-controller breakpoint"),
    (62, Blame::Gpu, "internal micro-controller halt"),
    (63, Blame::Unclear, "a memory page or row will be retired"),
    (64, Blame::Gpu, "a memory page or row could not be retired"),
    (69, Blame::Program, "graphics engine class error"),
    (74, Blame::Gpu, "NVLink error"),
    (79, Blame::Lost, "the GPU has fallen off the bus"),
    (92, Blame::Unclear, "many single bit ECC errors"),
    (94, Blame::Program, "contained ECC error: the programs it met must be restarted"),
    (95, Blame::Gpu, "uncontained ECC error: the GPU must be reset"),
    (109, Blame::Unclear, "context switch timed out"),
    (119, Blame::Gpu, "the GPU's system processor does not answer"),
    (120, Blame::Gpu, "the GPU's system processor failed"),
    (121, Blame::Gpu, "link to the CPU's memory failed"),
    (140, Blame::Gpu, "unrecovered ECC error"),
    (143, Blame::Gpu, "the GPU could not be initialised"),
    (149, Blame::Gpu, "NVLink failed"),
    (154, Blame::Unclear, "the GPU needs another kind of recovery"),
    (Xid::UNKNOWN.0, Blame::Unclear, "unknown Xid"),
];

impl Xid {
    /// An error without a number from the driver.
    pub const UNKNOWN: Self = Self(999);

    fn known(self) -> Option<(Blame, &'static str)> {
        KNOWN.iter().find(|(number, ..)| *number == self.0).map(|(_, blame, meaning)| (*blame, *meaning))
    }

    /// Its cause.
    pub fn blame(self) -> Blame {
        self.known().map_or(Blame::Unclear, |(blame, _)| blame)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = self.known().map_or("see NVIDIA's catalogue of Xid errors", |(_, meaning)| meaning);
        write!(f, "Xid {} ({meaning})", self.0)
    }
}
