//! `carma estimate`: how much memory and compute a job will need.

mod answer;
mod description;
mod subject;
mod training;
mod view;

use std::io::Write;

use anyhow::{Result, bail};
use carma_estimate::estimators::Estimator;
use clap::Args;

pub(crate) use answer::{Answered, answer};
pub(crate) use subject::{Subject, SubjectArguments, read_recording};
pub(crate) use training::{MachineArguments, TrainingArguments};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// Which estimator answers [default: dry-run with --trace, else static]
    #[arg(long, value_parser = estimator)]
    estimator: Option<Estimator>,
    /// All estimators side by side
    #[arg(long, conflicts_with = "estimator")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The best estimator's answer.
    pub(crate) const fn of(subject: SubjectArguments, json: bool) -> Self {
        Self { subject, estimator: None, all: false, json }
    }
}

pub(crate) fn estimator(word: &str) -> Result<Estimator, String> {
    let known = || Estimator::ALL.map(Estimator::name).join(", ");
    Estimator::named(word).ok_or_else(|| format!("known are {}; dnnmem is static, dnnperf is boosted-trees, llmem is llm-formula", known()))
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let subject = arguments.subject.read()?;
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
