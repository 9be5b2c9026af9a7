//! Terminals of interactive jobs, from the user's keyboard to the shim.
//!
//! ```text
//!  attach ◄── frames ──► manager's API ◄── the same bytes ──► FOLDER/terminal ◄──► shim ◄── pseudo-terminal ──► the job
//!  (raw keyboard)        (connect)
//! ```
//!
//! One client is attached at a time: a later one takes over. A client gets the last 64 KiB of output first. Without a client the job goes
//! on, until its idle limit. `~.` at the beginning of a line detaches, as in ssh, and `~~` types one `~` there.

mod attach;
mod escape;
mod frames;
mod raw;

pub use attach::{AttachError, AttachOutcome, attach};
pub use frames::{Decoder, Frame, FrameError};
