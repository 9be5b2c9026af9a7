//! Recovery: how a job that ran out of memory is brought back.

mod ladder;

pub use ladder::{Climb, OomContext, Rung};
