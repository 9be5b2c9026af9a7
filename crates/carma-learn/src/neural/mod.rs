//! Training of small neural networks: backward passes, Adam, early stopping. The forward passes are in `carma-estimate`.

mod adam;
mod attention;
mod dense;
mod encoder;
mod loss;
mod normalisation;
mod stack;
mod train;

pub(crate) use loss::Sample;
pub use train::Schedule;
pub(crate) use train::train_member;
