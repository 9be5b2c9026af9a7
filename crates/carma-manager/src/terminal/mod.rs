//! Terminals of interactive jobs, from the person at the keyboard to the shim that holds the job's end of it.
//!
//! ```text
//!  attach ◄── frames ──► manager's API ◄── the same bytes ──► FOLDER/terminal ◄──► shim ◄── pseudo-terminal ──► the job
//!  (raw keyboard)        (connect)
//! ```
//!
//! One is attached at a time, and whoever comes later takes over. Whoever attaches sees the last 64 KiB first. While nobody is attached the job goes
//! on, until its idle limit. `~.` at the beginning of a line detaches, as in ssh, and `~~` types one `~` there.

mod attach;
mod connect;
mod escape;
mod frames;
mod raw;

pub use attach::{AttachError, Departure, attach};
pub use connect::connect;
pub(crate) use connect::short;
pub use frames::{Decoder, Frame, FrameError};
