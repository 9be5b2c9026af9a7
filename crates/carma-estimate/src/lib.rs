//! Estimates the GPU memory and compute of a training job before it runs.
//!
//! A description of the model (a printed summary, a configuration file, an exported graph) is read into one [`model::Model`]: a list of
//! layers with shapes and edges. Together with a [`training::Training`] (batch, optimizer, precision ...) it is turned into the
//! allocations and frees of a few training iterations, which a model of PyTorch's caching allocator replays.

pub mod allocator;
pub mod calibration;
pub mod confidence;
pub mod durations;
pub mod estimators;
mod family;
pub mod gpu;
pub mod history;
pub mod learned;
pub mod model;
pub mod parse;
pub mod stack;
pub mod synthesis;
pub mod trace;
pub mod training;
pub mod utilisation;

pub use family::Family;
