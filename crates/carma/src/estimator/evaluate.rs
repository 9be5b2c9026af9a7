//! `carma estimator evaluate`: an estimator against measured memory.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use carma_estimate::Family;
use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::confidence::{DEFAULT_CONFIDENCE, doubt, upper_bound};
use carma_estimate::estimators::{Estimator, Question};
use carma_estimate::model::Model;
use carma_estimate::stack::Kernels;
use carma_estimate::trace::Recording;
use carma_estimate::training::Training;
use carma_format::{aligned, change, labelled, left, right, write_table};
use carma_learn::data::{self, Observation};
use carma_learn::evaluate::{Answer, LARGEST_MIB, Scores};
use carma_sim::Origin;
use clap::Args;

use super::machine::Machine;
use super::python_worker::PythonWorker;
use super::{beside, learned, recipes};
use crate::origin::{origin, print};
use crate::{estimate, files, progress};

pub(super) const MIB: f64 = (1 << 20) as f64;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator evaluate --data memory_xmem.csv --estimator dry-run")]
pub(crate) struct Arguments {
    /// A file with measured runs: one of the published sets, or one in the same format
    #[arg(long)]
    data: PathBuf,
    /// The estimator; dry-run and fake-tensor need Python with PyTorch, and so do rows of other estimators that are described by it
    #[arg(long, value_parser = estimate::estimator)]
    estimator: Estimator,
    #[command(flatten)]
    pub(super) rows: RowArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folds of the cross-validation of learned estimators
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=20))]
    pub(super) folds: u8,
    /// Size of the classes of a classifier in GB [default: 1 for MLPs, 8 otherwise]
    #[arg(long)]
    pub(super) class_size: Option<f64>,
    /// Write plots (confusion, scatter, PCA, t-SNE) to this folder
    #[arg(long)]
    pub(super) plots: Option<PathBuf>,
    /// List this many of the worst rows
    #[arg(long, default_value_t = 0)]
    worst: usize,
}

/// Which rows are evaluated, and with what.
#[derive(Debug, Clone, Args)]
pub(crate) struct RowArguments {
    /// Evaluate only this many rows, drawn at random
    #[arg(long)]
    sample: Option<usize>,
    /// Seed for the sample and the folds
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Size of the CUDA context in MiB [default: the size that fits the rows best]
    #[arg(long)]
    context: Option<f64>,
    /// Folder with the printed summaries of the real models [default: `summaries` beside the data]
    #[arg(long)]
    summaries: Option<PathBuf>,
    /// Keep the output of the Python package in this folder, and reuse it
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The Python interpreter with PyTorch (and timm, transformers ...)
    #[arg(long)]
    python: Option<PathBuf>,
}

/// One evaluated row.
pub(super) struct EvaluatedRow {
    pub(super) name: String,
    pub(super) family: Option<Family>,
    pub(super) answer: Answer,
    /// MiB of the estimate that are in doubt.
    pub(super) doubt: f64,
    /// Kernels of its convolutions.
    pub(super) kernels: Kernels,
    /// What published estimators answered for it, in MiB.
    pub(super) published: Vec<(&'static str, f64)>,
}

impl EvaluatedRow {
    /// A row with its answer, which is in doubt as a whole.
    pub(super) fn of(row: &Observation, family: Option<Family>, answer: Answer) -> Self {
        let kernels = Machine::of(row).stack.kernels;
        Self { name: row.name.clone(), family, doubt: answer.point, answer, kernels, published: row.published.clone() }
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let rows = arguments.rows.read(&arguments.data)?;
    let evaluated = match arguments.estimator {
        Estimator::BoostedTrees | Estimator::GpumemnetMlp | Estimator::GpumemnetTransformer => {
            learned::evaluate_rows(arguments, arguments.estimator, &rows)?
        }
        estimator => evaluate_rows(&arguments.rows, estimator, &arguments.data, &rows)?,
    };
    let answers: Vec<Answer> = evaluated.iter().map(|row| row.answer).collect();
    let scores = Scores::of(&answers);
    let origin = Origin { seeds: arguments.rows.seed.to_string(), ..origin([("data", arguments.data.as_path())])? };
    if arguments.json {
        let mut written = serde_json::to_value(scores)?;
        written["estimator"] = arguments.estimator.name().into();
        written["origin"] = serde_json::to_value(&origin)?;
        return Ok(writeln!(output, "{written}")?);
    }
    writeln!(output, "{:<24}{:>10}", "estimator", arguments.estimator.name())?;
    show(&scores, output)?;
    beside::show(&evaluated, output)?;
    worst(evaluated, arguments.worst, output)?;
    print(&origin, output)
}

impl RowArguments {
    /// The measured rows of a file, or a random sample of them.
    pub(super) fn read(&self, file: &Path) -> Result<Vec<Observation>> {
        let mut rows = files::read_table(file, data::read)?;
        rows.retain(|row| row.crashed || row.measured.is_some());
        if let Some(sample) = self.sample {
            fastrand::Rng::with_seed(self.seed).shuffle(&mut rows);
            rows.truncate(sample);
        }
        if rows.is_empty() {
            bail!("{} has no measured row", file.display());
        }
        Ok(rows)
    }
}

/// Runs the estimator on every row, with one context for all of them.
pub(super) fn evaluate_rows(
    arguments: &RowArguments,
    estimator: Estimator,
    file: &Path,
    rows: &[Observation],
) -> Result<Vec<EvaluatedRow>> {
    let summaries = arguments.summaries.clone().unwrap_or_else(|| file.parent().unwrap_or(Path::new(".")).join("summaries"));
    let mut worker = PythonWorker::new(arguments.python.as_deref(), arguments.keep.as_deref())?;
    let bar = progress::bar(rows.len(), "estimating");
    let mut estimated = Vec::new();
    let mut left_out = Vec::new();
    for row in rows {
        match estimate_row(estimator, row, &summaries, &mut worker) {
            Ok(estimate) => estimated.push((row, estimate)),
            // No row of these estimators can do without.
            Err(error) if worker.lacks_torch() && matches!(estimator, Estimator::DryRun | Estimator::FakeTensor) => {
                return Err(error.context(format!("the estimator {} needs PyTorch", estimator.name())));
            }
            Err(error) => left_out.push(format!("{}: {error:#}", row.name)),
        }
        bar.step();
    }
    drop(bar);
    for reason in left_out.iter().take(5) {
        eprintln!("carma: left out: {reason}");
    }
    if left_out.len() > 5 {
        eprintln!("carma: and {} more", left_out.len() - 5);
    }
    if estimated.is_empty() {
        bail!("no row could be evaluated");
    }
    let shift = if matches!(estimator, Estimator::Static | Estimator::DryRun) { shift(arguments, &estimated) } else { 0.0 };
    let evaluated = |(row, estimate): (&Observation, RowEstimate)| {
        let (answer, doubt) = estimate.shifted(row, estimator, shift);
        EvaluatedRow { doubt, ..EvaluatedRow::of(row, estimate.family, answer) }
    };
    Ok(estimated.into_iter().map(evaluated).collect())
}

/// An estimate for a row, in MiB.
struct RowEstimate {
    answer: carma_estimate::estimators::Answer,
    family: Option<Family>,
    machine: Machine,
}

impl RowEstimate {
    fn memory(&self) -> f64 {
        self.answer.bytes as f64 / MIB
    }

    /// The answer with another context, and the part of it that is in doubt.
    fn shifted(&self, row: &Observation, estimator: Estimator, shift: f64) -> (Answer, f64) {
        let mut answer = self.answer;
        answer.bytes = ((self.memory() + shift).max(0.0) * MIB) as u64;
        let floor = if answer.out_of_memory && self.machine.is_of_published_classes() { LARGEST_MIB + 1.0 } else { 0.0 };
        let bound = upper_bound(estimator, self.family, self.machine.stack.kernels, &answer, DEFAULT_CONFIDENCE);
        (Answer::to(row, (answer.bytes as f64 / MIB).max(floor), (bound as f64 / MIB).max(floor)), doubt(&answer) / MIB)
    }
}

fn estimate_row(estimator: Estimator, row: &Observation, summaries: &Path, worker: &mut PythonWorker) -> Result<RowEstimate> {
    let training = recipes::training(row);
    let machine = Machine::of(row);
    let (model, recording) = match estimator {
        Estimator::DryRun | Estimator::FakeTensor => (None, Some(recipes::recording(worker, row)?)),
        _ => (Some(recipes::model(worker, row, summaries, &training)?), None),
    };
    let question = question(model.as_ref(), &training, recording.as_ref(), &machine);
    let answer = estimator.estimate(&question).with_context(|| estimator.name())?;
    let family = model.as_ref().map(Family::of).or(row.family).or_else(|| recording.as_ref().map(Family::of_events));
    Ok(RowEstimate { answer, family, machine })
}

/// A question about a row's network on its stack.
pub(super) fn question<'job>(
    model: Option<&'job Model>,
    training: &'job Training,
    recording: Option<&'job Recording>,
    machine: &'job Machine,
) -> Question<'job> {
    let (stack, gpu) = (&machine.stack, Some(machine.memory));
    Question { model, training, recording, stack, allocator: AllocatorSettings::default(), gpu, confidence: DEFAULT_CONFIDENCE }
}

/// Memory in MiB of a model on the stack of the random networks, by the static estimator.
pub(super) fn static_memory(model: &Model, training: &Training) -> f64 {
    let answer = Estimator::Static.estimate(&question(Some(model), training, None, &Machine::of_random_networks()));
    answer.map_or(0.0, |answer| {
        if answer.out_of_memory { f64::max(answer.bytes as f64 / MIB, LARGEST_MIB + 1.0) } else { answer.bytes as f64 / MIB }
    })
}

/// MiB by which one context for all rows differs from the table's: the one with the least mean error, outliers counting no more than 25 %.
fn shift(arguments: &RowArguments, estimated: &[(&Observation, RowEstimate)]) -> f64 {
    if let Some(context) = arguments.context {
        return context - estimated[0].1.machine.stack.context;
    }
    let pairs: Vec<(f64, f64)> = estimated
        .iter()
        .filter(|(row, estimate)| !row.crashed && !estimate.answer.out_of_memory)
        .filter_map(|(row, estimate)| Some((estimate.memory(), row.measured?)))
        .collect();
    let error = |shift: f64| pairs.iter().map(|(memory, measured)| ((memory + shift - measured).abs() / measured).min(0.25)).sum::<f64>();
    let best = (-300..=300).map(f64::from).min_by(|one, other| error(*one).total_cmp(&error(*other))).unwrap_or(0.0);
    eprintln!("carma: context fitted to these rows: {:.0} MiB", estimated[0].1.machine.stack.context + best);
    best
}

fn show(scores: &Scores, output: &mut impl Write) -> Result<()> {
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    for (what, value) in [
        ("rows", scores.rows.to_string()),
        ("median error", percent(scores.median_ape)),
        ("mean error", percent(scores.mape)),
        ("within 10 %", percent(scores.within_10pct)),
        ("under-estimates", percent(scores.under_share)),
        ("above the 95 % bound", percent(scores.under_share_at_bound)),
        ("mean over at the bound", percent(scores.mean_over_at_bound)),
        ("right class of 1 GB", percent(scores.class_accuracy_1gb)),
        ("right class of 8 GB", percent(scores.class_accuracy_8gb)),
    ] {
        writeln!(output, "{}", labelled(what, 24, &aligned(&value, 10)))?;
    }
    Ok(())
}

fn worst(mut evaluated: Vec<EvaluatedRow>, count: usize, output: &mut impl Write) -> Result<()> {
    let error =
        |row: &EvaluatedRow| row.answer.measured.filter(|_| !row.answer.crashed).map_or(0.0, |measured| row.answer.point / measured - 1.0);
    evaluated.sort_by(|one, other| error(other).abs().total_cmp(&error(one).abs()));
    if count == 0 {
        return Ok(());
    }
    let cells = |row: &EvaluatedRow| {
        let measured = row.answer.measured.unwrap_or(0.0);
        [format!("{measured:.0}"), format!("{:.0}", row.answer.point), change(error(row), 1), row.name.clone()]
    };
    writeln!(output)?;
    let columns = [right("measured, MiB", 14), right("estimate, MiB", 14), right("error", 9), left("the worst rows", 40)];
    Ok(write_table(columns, &evaluated.iter().take(count).map(cells).collect::<Vec<_>>(), output)?)
}
