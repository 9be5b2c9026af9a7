//! Behaviour of the simulator, against hand-computed schedules and properties.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod lab;
mod properties;
mod reports;
mod schedules;
mod traces;
