//! Allocation events of a few training iterations: what a dry run records and what the static estimator makes up.

mod convolution;
mod replay;
mod text;

pub use convolution::{Convolution, Direction};
pub(crate) use replay::Replayer;
pub use replay::{Breakdown, Replay, replay};
pub use text::{Header, Recording, TraceError};

use serde::{Deserialize, Serialize};

/// A storage within one trace; numbers are not used twice.
pub type StorageId = u32;

/// One thing that happens to a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A storage is allocated.
    Allocate {
        /// The new storage.
        storage: StorageId,
        /// Bytes asked for.
        bytes: u64,
        /// What it is for.
        purpose: Purpose,
    },
    /// A storage is freed.
    Free(StorageId),
    /// It turns out what a storage is for.
    Reveal {
        /// The storage.
        storage: StorageId,
        /// What it is for.
        purpose: Purpose,
    },
    /// A convolution runs: the library needs a workspace while it does.
    Convolution(Convolution),
    /// A matrix product runs: the library takes its workspace at the first.
    MatrixProduct,
    /// A mark of progress.
    Mark(Mark),
}

/// What memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Parameters and buffers of the model.
    Weights,
    /// Gradients of parameters.
    Gradients,
    /// State of the optimizer.
    Optimizer,
    /// The batch.
    Inputs,
    /// What the forward pass makes.
    Activations,
    /// What backward pass and optimizer make for a moment.
    Temporaries,
}

/// Marks of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// An iteration begins; counted from 1.
    Iteration(u32),
    /// The forward pass begins.
    Forward,
    /// The backward pass begins.
    Backward,
    /// The optimizer begins.
    Optimizer,
    /// The recording ends.
    End,
}
