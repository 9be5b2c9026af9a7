//! A DCGM host engine, queried through its `dcgmi` program.

mod discovery;
mod dmon;
mod program;
mod stream;

pub use discovery::{gpus, instances};
pub use dmon::{Entity, Line, Monitor, Row};
pub use stream::Stream;
