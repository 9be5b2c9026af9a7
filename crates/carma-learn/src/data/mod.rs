//! Published measurements of GPU memory: reads tables into observations. The header identifies a table, not its name.

mod file_name;
pub mod networks;
mod observation;
mod read;
mod tables;

pub use file_name::Fields;
pub use networks::Network;
pub use observation::{Counters, Label, Observation};
pub use read::{DataError, read};
