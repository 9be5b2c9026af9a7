//! `carma gpus`: the load of each GPU, its processes with their owners, and the source of the numbers.
//! Where the user's manager has agents, their GPUs are shown too, with the names of the nodes.

mod find;
mod managed;
mod plain;
mod remote_table;
mod report;
mod table;
mod view;

pub(crate) use find::{World, choose, choose_whole, find, real};
pub(crate) use table::write_managed;
pub(crate) use view::profiler_options;

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use carma_format::{Stream, Terminal};
use clap::Args;
use managed::{ManagedGpus, is_remote};
use report::{Report, now};
use view::View;

/// Interval of checks for added or removed GPUs and instances.
const INVENTORY: Duration = Duration::from_secs(5);

/// What to show, and how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  carma gpus\n  carma gpus --watch 5")]
pub(crate) struct Arguments {
    /// Print JSON: one object, or one per line with --watch.
    #[arg(long)]
    json: bool,
    /// Repeat every SECONDS seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
    /// Do not wait for profiling counters.
    #[arg(long, conflicts_with = "watch")]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut managed = ManagedGpus::default();
    let mut view = match local(arguments) {
        Ok(view) => Some(view),
        // A login node has no GPUs of its own.
        Err(error) if !managed.ask().gpus.iter().any(is_remote) => return Err(error),
        Err(_) => None,
    };
    let mut checked = Instant::now();
    let clear = arguments.watch.is_some() && !arguments.json && Terminal::current().output == Stream::Screen;
    loop {
        let began = Instant::now();
        let mut report = view.as_mut().map_or_else(|| Report { at: now(), ..Report::default() }, View::sample);
        report.add_managed(managed.ask());
        if clear {
            // Cursor home, clear the screen below.
            write!(output, "\x1b[H\x1b[J")?;
        }
        match (arguments.json, arguments.watch) {
            (true, Some(_)) => writeln!(output, "{}", serde_json::to_string(&report)?)?,
            (true, None) => writeln!(output, "{}", serde_json::to_string_pretty(&report)?)?,
            (false, _) => table::write(&report, output)?,
        }
        output.flush()?;
        let Some(seconds) = arguments.watch else { return Ok(()) };
        thread::sleep(Duration::from_secs(seconds).saturating_sub(began.elapsed()));
        if let Some(view) = view.as_mut().filter(|_| checked.elapsed() >= INVENTORY) {
            view.refresh()?;
            checked = Instant::now();
        }
    }
}

/// The GPUs of this machine.
fn local(arguments: &Arguments) -> Result<View> {
    let (driver, world) = find()?;
    let mut view = View::new(Arc::new(driver), world)?;
    view.waited = !arguments.quick;
    if view.waited {
        view.await_counters();
    }
    Ok(view)
}
