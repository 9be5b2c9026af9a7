//! `carma resubmit`: the same job once more.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::{Resubmission, Submitted};
use carma_manager::submission::looks_secret;
use clap::Args;

use super::common::{AnswerArguments, JOB_NAMES, write_json};
use super::text::jobs;
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all of its jobs.\n\n\
The new job has the command, the folder, the environment and the needs of the old \
one, and starts as soon as there is room. The manager keeps no secrets of \
finished jobs: variables such as API_KEY are taken from your environment.\n\n\
Examples:\n  carma resubmit last\n  carma resubmit --failed 12"))]
pub(crate) struct Arguments {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// Only jobs of an array that did not succeed.
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut client = arguments.answer.manager.connect()?;
    let environment = std::env::vars().filter(|(name, _)| looks_secret(name)).collect();
    let resubmission = Resubmission { environment, failed: arguments.failed };
    let mut all = Submitted { jobs: Vec::new(), notes: Vec::new() };
    for name in &arguments.jobs {
        let Submitted { jobs: new, notes } = client.resubmit(name, &resubmission)?;
        for note in &notes {
            eprintln!("carma: {}", printable(note));
        }
        if !arguments.answer.json {
            let labels = new.iter().map(|job| Ok(client.job(&job.0.to_string())?.label())).collect::<Result<Vec<_>>>()?;
            writeln!(output, "{} is submitted again as {}", printable(name), jobs(&labels))?;
        }
        all.jobs.extend(new);
        all.notes.extend(notes);
    }
    if arguments.answer.json { write_json(&all, output) } else { Ok(()) }
}
