//! `carma trace`: traces analysed, sampled, mapped onto workloads and made up.

mod arguments;

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use carma_format::count;
use carma_sim::trace::{self, Analysis, DurationRule, Generation, ReadLimits, Window};
use carma_sim::{Catalogue, Trace, report};

use crate::files::{report_skipped, write_charts};
use crate::origin::{VERSION, origin};

pub(crate) use arguments::span;
use arguments::{AnalyzeArguments, GenerateArguments, MapArguments, SampleArguments, Source};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Summarize a trace: arrivals, durations, requested GPUs.
    #[command(alias = "analyse")]
    Analyze(AnalyzeArguments),
    /// Take a part of a trace: a time window, or a random sample of jobs.
    Sample(SampleArguments),
    /// Assign workloads of the catalogue to the jobs of a cluster log.
    ///
    /// Jobs are divided into short, medium and long ones, a third each. Each job gets a workload of the same third with the same number of
    /// GPUs, or the next lower number. Jobs that name a workload keep it. Your own workloads are used only if --catalogue names their file.
    Map(MapArguments),
    /// Generate a trace from a mix of light, medium and heavy jobs.
    ///
    /// Light: one GPU, less than 2 GiB, such as small models on CIFAR or MNIST. Medium: one GPU, 2 to 24 GiB, such as models on
    /// photographs. Heavy: more than 24 GiB, or several GPUs. All workloads of a class are equally likely. Arrivals are independent.
    Generate(GenerateArguments),
}

/// Runs the command.
pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::Analyze(arguments) => analyze(arguments, output),
        Command::Sample(arguments) => sample(arguments, output),
        Command::Map(arguments) => map(arguments, output),
        Command::Generate(arguments) => generate(arguments, output),
    }
}

fn analyze(arguments: &AnalyzeArguments, output: &mut impl Write) -> Result<()> {
    let (trace, catalogue) = arguments.source.read()?;
    if let Some(folder) = &arguments.svg {
        write_charts(folder, &report::trace_charts(&trace, &catalogue))?;
    }
    let analysis = Analysis::of(&trace, &catalogue);
    let text = if arguments.json { serde_json::to_string_pretty(&analysis)? + "\n" } else { analysis.to_string() };
    arguments.destination.write(output, |output| output.write_all(text.as_bytes()))
}

fn sample(arguments: &SampleArguments, output: &mut impl Write) -> Result<()> {
    let SampleArguments { source, from, to, jobs, seed, destination } = arguments;
    if to.is_some_and(|to| to <= *from) {
        bail!("--to must be later than --from");
    }
    let (trace, catalogue) = source.read()?;
    report_skipped(&trace);
    let sampled = trace::sample(&trace, Window { from: *from, to: *to }, *jobs, *seed);
    if sampled.jobs.is_empty() {
        bail!("none of the {} of {} is in the sample", count(trace.jobs.len(), "job"), source.trace.display());
    }
    let until = to.map_or_else(|| "the end".to_owned(), |to| to.to_string());
    let drawn = jobs.map(|_| format!(", drawn by seed {seed}")).unwrap_or_default();
    let rule = format!("{} of {}, submitted from {from} to {until}{drawn}", sampled.jobs.len(), count(trace.jobs.len(), "job"));
    let comments = source.provenance("sample", &rule)?;
    destination.write(output, |output| sampled.write_csv(&catalogue, &comments, output))
}

fn map(arguments: &MapArguments, output: &mut impl Write) -> Result<()> {
    let (trace, catalogue) = arguments.source.read()?;
    report_skipped(&trace);
    let durations = DurationRule::from(arguments.durations);
    let mapped = trace::map(&trace, &catalogue, arguments.seed, durations);
    let durations_of = if durations == DurationRule::Own { "the trace's own" } else { "the workloads'" };
    let seed = arguments.seed;
    let rule = format!("workloads by number of GPUs and third of duration, seed {seed}; durations are {durations_of}");
    let comments = arguments.source.provenance("map", &rule)?;
    arguments.destination.write(output, |output| mapped.write_csv(&catalogue, &comments, output))
}

fn generate(arguments: &GenerateArguments, output: &mut impl Write) -> Result<()> {
    let GenerateArguments { mix, jobs, mean_gap, seed, catalogue: catalogue_arguments, destination } = arguments;
    let catalogue = catalogue_arguments.load()?;
    let generation = Generation { mix: *mix, jobs: *jobs as usize, mean_gap: *mean_gap, seed: *seed };
    let trace = trace::generate(&generation, &catalogue)?;
    let jobs = count(*jobs as usize, "job");
    let rule = format!("{jobs} of mix {mix} (light/medium/heavy), mean gap {mean_gap}, seed {seed}");
    let given: Vec<(&str, &Path)> = catalogue_arguments.files().iter().map(|file| ("catalogue", file.as_path())).collect();
    let comments = provenance("generate", given, &rule)?;
    destination.write(output, |output| trace.write_csv(&catalogue, &comments, output))
}

impl Source {
    fn read(&self) -> Result<(Trace, Catalogue)> {
        let catalogue = self.catalogue.load()?;
        Ok((Trace::read(&self.trace, &catalogue, &ReadLimits::default())?, catalogue))
    }

    /// What a trace that is made of it comes from.
    fn provenance(&self, tool: &str, rule: &str) -> Result<Vec<String>> {
        let catalogues = self.catalogue.read_files();
        let files = catalogues.iter().map(|file| ("catalogue", file.as_path()));
        provenance(tool, [("trace", self.trace.as_path())].into_iter().chain(files), rule)
    }
}

/// Source and rule of a trace, so that it can be made again.
fn provenance<'a>(tool: &str, files: impl IntoIterator<Item = (&'a str, &'a Path)>, rule: &str) -> Result<Vec<String>> {
    let inputs = origin(files)?.inputs.into_iter().map(|input| format!("from {input}"));
    Ok([format!("made by carma {VERSION} trace {tool}")].into_iter().chain(inputs).chain([rule.to_owned()]).collect())
}
