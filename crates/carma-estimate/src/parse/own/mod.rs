//! Our own description: TOML with one table for each layer.
//!
//! The full form has each layer's output and edges. Written by hand it can be shorter: with `input = [3, 224, 224]`, a layer needs its
//! type and what its author would tell PyTorch, such as `channels`, `kernel` and `stride`; shapes and parameters follow.

mod kinds;
mod read;
mod schema;
mod write;

pub(super) use read::read;
pub use write::write_toml;
