//! `carma estimate`: how much memory and compute a job will need.

mod answer;
mod description;
mod training;
mod view;

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use carma_estimate::estimators::{Estimator, Question};
use carma_estimate::parse::Hints;
use carma_estimate::trace::Recording;
use clap::Args;

pub(crate) use answer::{Answered, Job, answer};
pub(crate) use description::read as read_description;
pub(crate) use training::{MachineArguments, TrainingArguments, bytes};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A description of the model: the text of torchsummary, torchinfo or
    /// print(model), config.json of Hugging Face, ONNX, safetensors, a task file
    /// (.rad) or our own TOML
    #[arg(required_unless_present = "trace")]
    model: Option<PathBuf>,
    /// Events that `carma trace-memory -o` recorded
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Which estimator answers [default: dry-run with --trace, else static]
    #[arg(long, value_parser = estimator)]
    estimator: Option<Estimator>,
    /// All estimators side by side
    #[arg(long, conflicts_with = "estimator")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    training: TrainingArguments,
    #[command(flatten)]
    machine: MachineArguments,
}

impl Arguments {
    /// The question that a dry run leads to.
    pub(crate) fn of(
        model: Option<PathBuf>,
        trace: Option<PathBuf>,
        json: bool,
        training: &TrainingArguments,
        machine: &MachineArguments,
    ) -> Self {
        Self { model, trace, estimator: None, all: false, json, training: training.clone(), machine: machine.clone() }
    }
}

pub(crate) fn estimator(word: &str) -> Result<Estimator, String> {
    let known = || Estimator::ALL.map(Estimator::name).join(", ");
    Estimator::named(word).ok_or_else(|| format!("known are {} and dnnmem, which is static", known()))
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let (description, training) = match &arguments.model {
        Some(file) => {
            let (description, training) = read_description(file, &arguments.training)?;
            (Some(description), training)
        }
        None => (None, arguments.training.training(&Hints::default())),
    };
    let recording = arguments.trace.as_deref().map(read_recording).transpose()?;
    let hints = description.as_ref().map(|description| description.hints.clone()).unwrap_or_default();
    let stack = arguments.machine.stack(&hints)?;
    let job = Job { description: description.as_ref(), training: &training, stack: &stack };
    let question = Question {
        model: description.as_ref().map(|description| &description.model),
        training: &training,
        recording: recording.as_ref(),
        stack: &stack,
        allocator: arguments.machine.allocator()?,
        gpu: arguments.machine.gpu(),
        confidence: arguments.machine.confidence,
    };
    if arguments.all {
        let answers: Vec<Answered> = Estimator::ALL.into_iter().map(|estimator| answer(estimator, &question)).collect();
        return if arguments.json {
            view::json_of_all(&job, &question, &answers, output)
        } else {
            view::all(&job, &question, &answers, output)
        };
    }
    let chosen = arguments.estimator.unwrap_or(if recording.is_some() { Estimator::DryRun } else { Estimator::Static });
    let answered = answer(chosen, &question);
    if let Err(reason) = answered.result {
        bail!("{chosen} {reason}");
    }
    if arguments.json { view::json(&job, &question, &answered, output) } else { view::one(&job, &question, &answered, output) }
}

/// Reads what a dry run recorded.
pub(crate) fn read_recording(file: &Path) -> Result<Recording> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Recording::read(BufReader::new(open)).with_context(|| format!("{} cannot be used", file.display()))
}
