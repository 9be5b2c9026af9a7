//! Small neural networks in `f32`: layouts and forward passes. Arrays hold one feature of all samples (or tokens) side by side.
//!
//! All arrays are padded to whole lanes, so that loops become vector instructions. Sums run in one fixed order, so that results do not depend
//! on the number of threads. No machine learning crate: the networks have a few thousand parameters. `carma-learn` has the backward passes.

pub mod attention;
mod dense;
mod encoder;
pub mod lanes;
mod member;
pub mod normalisation;
mod stack;

pub use dense::Dense;
pub use encoder::{Encoder, EncoderLayer, EncoderPass, EncoderShape, LayerPass, POOLING, Token};
pub use member::{Member, Workspace};
pub use stack::Stack;
