//! `carma estimator calibrate`: derives the memory overhead of a stack from one nvidia-smi reading.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use carma_estimate::stack::Stack;
use clap::Args;

use crate::estimate::SubjectArguments;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator calibrate resnet50.txt --batch 64 --reading 7106MiB -o lab.toml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// Memory that nvidia-smi showed for the process at its peak, such as 7106MiB
    #[arg(long, value_parser = crate::units::bytes)]
    reading: u64,
    /// Write the stack to this file, for --stack
    #[arg(short, long)]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let subject = arguments.subject.read()?;
    let (question, stack) = (subject.question(), &subject.stack);
    let estimator = subject.best_estimator();
    let answer = estimator.estimate(&question).with_context(|| format!("{estimator} has no answer"))?;
    let (_, context) = answer.breakdown.with_context(|| format!("stack {} has no context of its own to fit", stack.name))?;
    let reserved = answer.bytes - context;
    if arguments.reading < reserved {
        let (reading, reserved) = (arguments.reading >> 20, reserved >> 20);
        bail!("the reading of {reading} MiB is below the {reserved} MiB of the tensors alone: are batch, optimizer and precision right?");
    }
    let fitted = stack.calibrated(arguments.reading, reserved, context > stack.context_bytes(false));
    writeln!(output, "context {:.0} MiB (the table says {:.0})", fitted.context, stack.context)?;
    if let Some(file) = &arguments.output {
        fs::write(file, Stack::write(vec![fitted])).with_context(|| format!("cannot write {}", file.display()))?;
        writeln!(output, "written to {}: use it with --stack {}", file.display(), file.display())?;
    }
    Ok(())
}
