//! The core from outside: events in, actions out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::wildcard_imports, reason = "the tests speak of everything the core has")]

mod configuration;
mod correction;
mod devices;
mod enforcement;
mod explanations;
mod host;
mod idle_jobs;
mod job_life;
mod lab;
mod learning;
mod log;
mod modes;
mod policies;
mod power;
mod predicted_reservations;
mod predictions;
mod properties;
mod queueing;
mod quotas;
mod recovery;
mod risk;
mod servers;
mod stalls;
mod time_slices;
mod turns;
mod worked_examples;
