//! `carma drain` and `carma resume`: GPUs out of use for new jobs, and back.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::DrainResult;
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
        let result = client.drain(gpu, drained)?;
        writeln!(output, "GPU {gpu} {}", text(drained, result))?;
    }
    Ok(())
}

/// What is true of a GPU after it was drained or resumed.
const fn text(drained: bool, DrainResult { changed, lost }: DrainResult) -> &'static str {
    match (drained, changed, lost) {
        (true, true, false) => "takes no new jobs",
        (true, false, false) => "was drained already",
        (true, true, true) => "is lost; it takes no new jobs when it is back",
        (true, false, true) => "is lost, and was drained already",
        (false, true, false) => "takes jobs again",
        (false, false, false) => "was not drained",
        (false, true, true) => "is no longer drained, but it is lost: it takes jobs when it is back",
        (false, false, true) => "was not drained, but it is lost: it takes jobs when it is back",
    }
}
