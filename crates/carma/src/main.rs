//! CARMA's command line.

mod calibrate;
mod catalogue;
mod cli;
mod compare;
mod configuration;
mod demo;
mod estimate;
mod estimator;
mod event_log;
mod files;
mod policies;
mod progress;
mod python;
mod simulate;
mod trace;
mod trace_memory;
mod units;
mod validate;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output may stop when they have seen enough.
        Err(error) if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("carma: {error:#}");
            ExitCode::FAILURE
        }
    }
}
