//! Small neural networks by hand: forwards and backwards in `f32`, over arrays that hold one feature of all samples (or tokens) side by side.
//!
//! All arrays are padded to whole lanes, so that loops become vector instructions; sums run in one fixed order, so that the same seed gives
//! the same weights on any number of threads.

mod adam;
mod attention;
mod dense;
mod encoder;
mod lanes;
mod member;
mod normalisation;
mod short;
mod stack;
mod train;

pub(crate) use encoder::{EncoderShape, Token};
pub(crate) use member::{Member, Sample, Workspace};
pub(crate) use short::short;
pub use train::Schedule;
pub(crate) use train::train_member;
