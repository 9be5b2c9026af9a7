//! `carma demo`: a built-in trace scheduled with one job a GPU and with sharing, side by side.

mod trace;
mod view;
mod workload;
mod world;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_core::{Config, Settings};

use crate::configuration::ConfigArguments;
use world::Run;

/// What the demo is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    rules: ConfigArguments,
    /// How many A100-40GB there are.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    gpus: u16,
    /// Write the event log of the sharing run to this file; `carma replay-log` replays it.
    #[arg(long, value_name = "FILE")]
    event_log: Option<PathBuf>,
}

/// Runs the trace twice and prints both schedules.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let sharing = arguments.rules.settings()?;
    let exclusive = Settings { policy: Some("exclusive".to_owned()), ..sharing.clone() };
    let log: Box<dyn Write> = match &arguments.event_log {
        Some(file) => Box::new(BufWriter::new(File::create(file).with_context(|| format!("cannot create {}", file.display()))?)),
        None => Box::new(std::io::sink()),
    };
    let alone = Run::of(&exclusive, arguments.gpus, std::io::sink())?;
    let shared = Run::of(&sharing, arguments.gpus, log)?;
    let Config { preset, mapping, .. } = sharing.check()?;
    let names = ["exclusive".to_owned(), format!("{mapping} ({} preset)", preset.name())];
    view::print(&names, &[alone, shared], output)
}
