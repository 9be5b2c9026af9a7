//! Behaviour of the crate from outside, in one binary: linking once is quicker than once a file.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(clippy::format_collect, clippy::naive_bytecount, reason = "inputs of tests are small")]

mod allocator;
mod history;
mod hostile;
mod parse_agreement;
mod parse_attributes;
mod parse_edges;
mod parse_lab;
mod parse_own;
mod parse_published;
mod parse_small;
mod parse_totals;
mod recorded;
mod synthesis;
mod utilisation;
