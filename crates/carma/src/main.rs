//! CARMA's command line.

mod agent;
mod backup;
mod calibrate;
mod catalogue;
mod cli;
mod command_list;
mod compare;
mod configuration;
mod demo;
mod doctor;
mod dry_runs;
mod emu;
mod estimate;
mod estimator;
mod event_log;
mod files;
mod gpus;
mod manager;
mod manual;
mod mig;
mod mps;
mod notify;
mod origin;
mod policies;
mod pool;
mod profile;
mod progress;
mod python;
mod replay;
mod report;
mod sbatch;
mod service;
mod shim;
mod simulate;
mod submit;
mod terminal;
mod token;
mod top;
mod trace;
mod trace_memory;
mod units;
mod up;
mod user_task;
mod validate;
mod web;
mod what_if;
mod world;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    // On emulated GPUs this program also acts as the driver's programs, under their names.
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<_> = arguments.collect();
    if let Some(code) = carma_emu::programs::play(name.as_ref(), &arguments) {
        return code;
    }
    let done = shim::run(&arguments).map(|done| done.map(|()| ExitCode::SUCCESS));
    match done.unwrap_or_else(|| cli::Cli::read().run()) {
        Ok(code) => code,
        // A reader may close our output early.
        Err(error) if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            // A shim writes this to a file: a full disk must not turn an error into a panic.
            let _ = writeln!(std::io::stderr(), "carma: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes. Many errors have the text of their cause in their own, so it is not said again.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        _ if text.contains(&cause) => text,
        _ => format!("{text}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use anyhow::Context;
    use carma_manager::serve::ServeError;

    use super::*;

    #[test]
    fn the_cause_of_an_error_is_said_once() {
        let source = std::io::Error::from(ErrorKind::AddrInUse);
        let error = anyhow::Error::from(ServeError::Socket { path: PathBuf::from("/s"), source });
        assert_eq!(with_causes(&error), "cannot listen on /s: address in use");
        let error: anyhow::Error = Err::<(), _>(error).context("no manager").unwrap_err();
        assert_eq!(with_causes(&error), "no manager: cannot listen on /s: address in use");
    }
}
