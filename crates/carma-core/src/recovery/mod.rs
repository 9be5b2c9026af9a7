//! Recovery: how a job that ran out of memory is brought back.

mod ladder;

pub use ladder::{LadderPosition, OomContext, Rung};
