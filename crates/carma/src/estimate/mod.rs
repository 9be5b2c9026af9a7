//! `carma estimate`: how much memory and compute a job will need.

mod answer;
mod description;
mod fits;
mod subject;
mod training;
mod view;

use std::io::Write;

use anyhow::{Result, bail};
use carma_estimate::estimators::Estimator;
use carma_estimate::gpu::Gpu;
use clap::Args;

pub(crate) use answer::{EstimatorAnswer, answer};
pub(crate) use fits::Precision;
pub(crate) use subject::{Subject, SubjectArguments, read_recording};
pub(crate) use training::{MachineArguments, TrainingArguments};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  carma estimate resnet50.txt --batch 64 --gpu A100-40GB\n  carma estimate --all config.json --batch 8 --sequence 1024\n  carma estimate resnet50.txt --fits RTX4060,RTX3090 --max-batch"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: SubjectArguments,
    /// The estimator [default: dry-run with --trace, static otherwise]
    #[arg(long, value_parser = estimator)]
    estimator: Option<Estimator>,
    /// Show whether the job fits these GPUs, such as RTX4060,RTX3090,A100-40GB
    #[arg(long, conflicts_with = "estimator")]
    all: bool,
    #[command(flatten)]
    fits: FitArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which GPUs a job would fit.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FitArguments {
    /// Which of these GPUs the job fits, such as RTX4060,RTX3090,A100-40GB
    #[arg(long, value_name = "GPUS", value_delimiter = ',', value_parser = known_gpu, conflicts_with_all = ["gpu", "gpu_memory"])]
    fits: Vec<&'static Gpu>,
    /// Find the largest batch that fits these GPUs
    #[arg(long, requires = "fits")]
    pub(crate) max_batch: bool,
}

impl FitArguments {
    /// Whether an answer for several GPUs is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.fits.is_empty()
    }

    /// The table of GPUs. `of` makes the subject with another batch.
    pub(crate) fn show(
        &self,
        subject: &Subject,
        precision: Precision,
        of: impl FnMut(u64) -> Result<Subject>,
        json: bool,
        output: &mut impl Write,
    ) -> Result<()> {
        let found = if self.max_batch { fits::with_batches(subject, &self.fits, precision, of)? } else { fits::fits(subject, &self.fits)? };
        if json {
            return fits::show_json(subject, &found, output);
        }
        view::job(subject, output)?;
        fits::show(subject, &found, output)?;
        view::notes(subject, output)
    }
}

fn known_gpu(word: &str) -> Result<&'static Gpu, String> {
    training::gpu(word)?;
    Gpu::named(word).ok_or_else(|| word.to_owned())
}

impl Arguments {
    /// The best estimator's answer.
    pub(crate) const fn of(subject: SubjectArguments, fits: FitArguments, json: bool) -> Self {
        Self { subject, estimator: None, all: false, fits, json }
    }
}

pub(crate) fn estimator(word: &str) -> Result<Estimator, String> {
    let known = || Estimator::ALL.map(Estimator::name).join(", ");
    Estimator::named(word).ok_or_else(|| format!("known are {}; dnnmem is static, dnnperf is boosted-trees, llmem is llm-formula", known()))
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let subject = arguments.subject.read()?;
    if arguments.fits.is_wanted() {
        if arguments.fits.max_batch && arguments.subject.model.is_none() {
            bail!("recorded events have one batch: give a description, or `carma trace-memory --max-batch` with {{batch}} in the command");
        }
        return arguments.fits.show(&subject, Precision::Exact, |batch| arguments.subject.with_batch(batch), arguments.json, output);
    }
    let question = subject.question();
    if arguments.all {
        let answers: Vec<EstimatorAnswer> = Estimator::ALL.into_iter().map(|estimator| answer(estimator, &question)).collect();
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
