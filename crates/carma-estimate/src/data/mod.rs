//! Published measurements of GPU memory: tables in, observations out. A table is recognised by its header, not by its name.

mod file_name;
pub mod networks;
mod observation;
mod read;
mod tables;

pub use file_name::Fields;
pub use networks::Network;
pub use observation::{Counters, Family, Label, Observation};
pub use read::{DataError, read};
