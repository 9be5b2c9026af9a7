//! `carma estimate`: how much memory and compute a job will need.

mod answer;
mod description;
mod subject;
mod training;
mod view;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use carma_estimate::estimators::Estimator;
use clap::Args;

pub(crate) use answer::{Answered, answer};
pub(crate) use subject::{Subject, read_recording};
pub(crate) use training::{MachineArguments, TrainingArguments};

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
    Estimator::named(word).ok_or_else(|| format!("known are {}; dnnmem is static, dnnperf is boosted-trees, llmem is llm-formula", known()))
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let subject = Subject::read(arguments.model.as_deref(), arguments.trace.as_deref(), &arguments.training, &arguments.machine)?;
    let question = subject.question();
    if arguments.all {
        let answers: Vec<Answered> = Estimator::ALL.into_iter().map(|estimator| answer(estimator, &question)).collect();
        let show = if arguments.json { view::json_of_all } else { view::all };
        return show(&subject, &question, &answers, output);
    }
    let chosen = arguments.estimator.unwrap_or(subject.best_estimator());
    let answered = answer(chosen, &question);
    if let Err(reason) = answered.result {
        bail!("{chosen} {reason}");
    }
    if arguments.json { view::json(&subject, &question, &answered, output) } else { view::one(&subject, &question, &answered, output) }
}
