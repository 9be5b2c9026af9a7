//! Estimators that learn from measurements, and how far they can be trusted.

pub mod evaluate;
mod parallel;

pub use parallel::on_all_cores;
