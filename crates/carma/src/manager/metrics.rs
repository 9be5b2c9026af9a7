//! `carma metrics`: the Prometheus metrics, for people and for `node_exporter`'s textfile collector.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::common::Manager;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma metrics | grep carma_jobs")]
pub(crate) struct Arguments {
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let page = arguments.manager.connect()?.metrics()?;
    Ok(output.write_all(page.as_bytes())?)
}
