//! The manager's parts with real processes, real files and real logs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod client;
mod host;
mod measurements;
mod store;
mod submission;
mod terminals;
mod verdicts;
