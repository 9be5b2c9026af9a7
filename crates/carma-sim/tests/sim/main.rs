//! Behaviour of the simulator, against hand-computed schedules and properties.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod enforcement;
mod fairness;
mod interference;
mod lab;
mod modes;
mod power;
mod properties;
mod published;
mod reports;
mod schedules;
mod search;
mod time_slices;
mod traces;
