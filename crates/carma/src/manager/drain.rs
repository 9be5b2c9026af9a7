//! `carma drain` and `carma resume`: GPUs out of use for new jobs, and back.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::common::Manager;

/// The end of the help of both commands.
pub(super) fn help(verb: &str) -> String {
    format!("GPU is a number in `carma gpus`, or a name in `carma why`, such as s0/gpu3 or s0/gpu3/mig1.\n\nExample:\n  carma {verb} 3")
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The GPUs.
    #[arg(required = true, value_name = "GPU")]
    gpus: Vec<String>,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, drained: bool, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    for gpu in &arguments.gpus {
        client.drain(gpu, drained)?;
        writeln!(output, "GPU {gpu} {}", if drained { "takes no new jobs" } else { "takes jobs again" })?;
    }
    Ok(())
}
