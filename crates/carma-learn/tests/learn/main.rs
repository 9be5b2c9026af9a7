//! Training and evaluation from outside, in one binary: linking once is quicker than once per file.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod data;
mod dataset;
mod gpumemnet;
mod plots;
mod scores;
mod trees;
mod utilisation;
