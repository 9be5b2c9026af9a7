//! Behaviour of the crate from outside, in one binary: linking once is quicker than once a file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod allocator;
mod data;
mod learning;
mod synthesis;
