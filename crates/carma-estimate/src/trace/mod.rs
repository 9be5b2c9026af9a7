//! Allocation events of a few training iterations: recorded by a dry run or synthesized by the static estimator.

mod replay;
mod text;

pub(crate) use replay::Replayer;
pub use replay::{Breakdown, Replay, replay};
pub use text::{Header, Recording, TraceError};

pub use crate::stack::{Convolution, Direction};

use serde::{Deserialize, Serialize};

/// A storage within one trace; ids are not reused.
pub type StorageId = u32;

/// One event in a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A storage is allocated.
    Allocate {
        /// The new storage.
        storage: StorageId,
        /// Requested bytes.
        bytes: u64,
        /// Its purpose.
        purpose: Purpose,
    },
    /// A storage is freed.
    Free(StorageId),
    /// The purpose of a storage becomes known.
    Reveal {
        /// The storage.
        storage: StorageId,
        /// Its purpose.
        purpose: Purpose,
    },
    /// A convolution runs: the library needs a temporary workspace.
    Convolution(Convolution),
    /// A matrix product runs: the first one allocates the library's workspace.
    MatrixProduct,
    /// A progress mark.
    Mark(Mark),
}

/// Purpose of memory.
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
    /// Results of the forward pass.
    Activations,
    /// Temporary tensors of the backward pass and the optimizer.
    Temporaries,
}

/// Progress marks.
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
