//! Behaviour of the crate from outside, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod data;
mod learning;
