//! `carma report`: a time on the manager's GPUs, as one page to read, to keep and to print.
//!
//! ```text
//!  the manager ─► ReportData (jobs, minutes of GPUs, energy, a simulated run) ─► sections ─► one HTML file ─► a browser's PDF
//! ```

mod data;
mod energy;
mod estimates;
mod headline;
mod jobs;
mod page;
mod parts;
mod pdf;
mod period;
mod recoveries;
mod samples;
mod sharing;
mod utilisation;
mod waiting;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use carma_core::UserId;
use clap::Args;
use jiff::tz::TimeZone;

use crate::manager::{Manager, Moment, user};
use crate::origin::{command, settings_in_a_line};
use data::{ReportData, ReportRequest};
use period::Period;

/// Default file.
const FILE: &str = "carma-report.html";

#[derive(Debug, Args)]
#[command(after_help = "\
The report is one HTML file without scripts. It covers the jobs that were submitted \
in this time. A PDF needs a browser on this machine: Chromium, Chrome or Edge.\n\n\
Examples:\n  carma report --since 7d --pdf week.pdf\n  carma report --since 2027-01-01 --until 2027-02-01 --user ada -o ada.html")]
pub(crate) struct Arguments {
    /// Start of the report: 7d, 12h, 2027-01-31 or 2027-01-31T08:00.
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: Moment,
    /// End of the report, in the same form [default: now].
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Only jobs of this user (name or number).
    #[arg(short, long, value_parser = user)]
    user: Option<UserId>,
    /// Write the report to this file; - is standard output [default: carma-report.html, unless --pdf is given].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write a PDF file, with a browser of this machine.
    #[arg(long, value_name = "FILE")]
    pdf: Option<PathBuf>,
    #[command(flatten)]
    manager: Manager,
}

/// Queries the manager, and writes the page.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let status = client.status()?;
    let until = arguments.until.map_or(status.now, |until| until.at(status.now)).min(status.now);
    let period = Period { since: arguments.since.at(status.now), until, zone: TimeZone::system() };
    ensure!(period.since < period.until, "the requested period ends before it begins");
    let settings = settings_in_a_line(&client.configuration()?.written)?;
    let request = ReportRequest { period, user: arguments.user, command: command(), settings };
    let html = page::html(&ReportData::gather(client, status, request)?);
    let file = arguments.output.as_deref().or_else(|| arguments.pdf.is_none().then_some(Path::new(FILE)));
    match file {
        Some(dash) if dash == Path::new("-") => output.write_all(html.as_bytes())?,
        Some(file) => {
            fs::write(file, &html).with_context(|| format!("cannot write {}", file.display()))?;
            eprintln!("carma: wrote {}", file.display());
        }
        None => {}
    }
    if let Some(file) = &arguments.pdf {
        pdf::print(&html, file)?;
        eprintln!("carma: wrote {}", file.display());
    }
    Ok(())
}
