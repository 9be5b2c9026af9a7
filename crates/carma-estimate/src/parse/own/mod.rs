//! Our own description: TOML with one table for each layer.
//!
//! The full form has each layer's output and edges. A shorter form is for writing by hand: with `input = [3, 224, 224]`, a layer needs
//! its type and its PyTorch arguments, such as `channels`, `kernel` and `stride`; shapes and parameters are inferred.

mod kinds;
mod read;
mod schema;
mod write;

pub(super) use read::read;
pub use write::write_toml;
