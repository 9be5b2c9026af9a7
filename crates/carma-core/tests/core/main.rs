//! The core from outside: events in, actions out.

mod configuration;
mod devices;
mod explanations;
mod job_life;
mod lab;
mod log;
mod policies;
mod properties;
mod queueing;
mod recovery;
mod risk;
mod worked_examples;
