//! The flags of `carma trace`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_core::Seconds;
use carma_sim::trace::{DurationRule, Mix};
use clap::{Args, ValueEnum};

use crate::catalogue::CatalogueArguments;

/// The trace to work on.
#[derive(Debug, Args)]
pub(super) struct Source {
    #[arg(help = format!("The trace, plain or compressed with gzip. Formats: {}", carma_sim::trace::formats()))]
    pub(super) trace: PathBuf,
    #[command(flatten)]
    pub(super) catalogue: CatalogueArguments,
}

/// Where the result goes.
#[derive(Debug, Args)]
pub(super) struct Destination {
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Destination {
    /// Writes to the file, or else to standard output.
    pub(super) fn write(&self, stdout: &mut impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let Some(path) = &self.output else {
            let mut buffered = BufWriter::new(stdout);
            write(&mut buffered)?;
            return Ok(buffered.flush()?);
        };
        let to_file = || {
            let mut file = BufWriter::new(File::create(path)?);
            write(&mut file)?;
            file.flush()
        };
        to_file().with_context(|| format!("cannot write {}", path.display()))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma trace analyze mix.csv --svg charts")]
pub(crate) struct AnalyzeArguments {
    #[command(flatten)]
    pub(super) source: Source,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Also write charts as SVG files to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(super) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(super) destination: Destination,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma trace sample philly.csv --from 3d --to 4d -o day.csv")]
pub(crate) struct SampleArguments {
    #[command(flatten)]
    pub(super) source: Source,
    /// Take jobs submitted after this time: seconds, or 30m, 12h, 3d. It becomes time zero of the sample.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span)]
    pub(super) from: Seconds,
    /// Take jobs submitted before this time: seconds, or 30m, 12h, 3d.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(super) to: Option<Seconds>,
    /// Draw this many jobs at random. Their order stays.
    #[arg(long, value_name = "NUMBER")]
    pub(super) jobs: Option<usize>,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) destination: Destination,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma trace map philly.csv --durations workload -o mapped.csv")]
pub(crate) struct MapArguments {
    #[command(flatten)]
    pub(super) source: Source,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Source of the run times alone.
    #[arg(long, value_enum, default_value_t = DurationSource::Own)]
    pub(super) durations: DurationSource,
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// The durations that a mapped trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DurationSource {
    /// The trace.
    Own,
    /// The assigned workload.
    Workload,
}

impl From<DurationSource> for DurationRule {
    fn from(durations_of: DurationSource) -> Self {
        match durations_of {
            DurationSource::Own => Self::Own,
            DurationSource::Workload => Self::Workload,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma trace generate --mix 65/27/8 --jobs 90 --seed 1 -o mix.csv")]
pub(crate) struct GenerateArguments {
    /// Percentages of light, medium and heavy jobs. Published mixes: 65/27/8 and 0/83/17.
    #[arg(long, value_name = "L/M/H", default_value = "65/27/8")]
    pub(super) mix: Mix,
    /// Number of jobs.
    #[arg(long, value_name = "NUMBER", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) jobs: u32,
    /// Mean time between submissions: seconds, or 30m, 12h, 3d.
    #[arg(long, value_name = "TIME", default_value = "120", value_parser = span)]
    pub(super) mean_gap: Seconds,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) catalogue: CatalogueArguments,
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// A time as the user writes it.
pub(crate) fn span(text: &str) -> Result<Seconds, String> {
    let (number, each) = match text.as_bytes() {
        [number @ .., b's'] => (number.len(), 1.0),
        [number @ .., b'm'] => (number.len(), 60.0),
        [number @ .., b'h'] => (number.len(), 3600.0),
        [number @ .., b'd'] => (number.len(), 86_400.0),
        all => (all.len(), 1.0),
    };
    let seconds = text[..number].parse::<f64>().map_err(|_| "give seconds, or a number with m, h or d".to_owned())?;
    Seconds::new(seconds * each).map_err(|error| error.to_string())
}
