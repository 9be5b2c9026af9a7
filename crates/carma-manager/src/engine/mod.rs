//! The engine: one thread around the decision core.

mod handle;
mod input;

pub use handle::Handle;
