//! `carma sbatch`: a script for Slurm, with the shards and the host memory that it needs.
//!
//! ```text
//!  command line, SBATCH_ variables, #SBATCH lines ─► options, given ─┐
//!  history, description, dry run ─► need ────────────────────────────┼─► plan ─► sbatch ─► wrapper ─► attempt ─► raise, comeback
//!  scontrol show node ─► site ───────────────────────────────────────┘           (in the job)
//! ```

mod arguments;
mod attempt;
mod need;
mod options;
mod plan;
mod raise;
mod request;
mod requeue;
mod site;
mod submission;
mod view;
mod wrapper;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use carma_core::Config;
use carma_manager::slurm::Commands;
use clap::Args;

use self::arguments::{Options, takes_value};
pub(crate) use self::attempt::{RunArguments, run as run_attempt};
use self::options::Line;
use self::plan::{Facts, Plan};
use self::request::Request;
use self::submission::{Batch, Submission};

/// Restarts after out-of-memory errors, unless the user says otherwise.
const RETRIES: u32 = 3;

#[derive(Debug, Args)]
#[command(
    override_usage = "carma sbatch [OPTIONS] [OPTIONS OF SBATCH] SCRIPT [ARGUMENT]...\n       carma sbatch [OPTIONS] [OPTIONS OF SBATCH] --wrap COMMAND",
    after_help = "\
The options above can stand anywhere before the script. All other options go to \
sbatch unchanged; the first word that is no option is the script. Requests in the \
command line, in variables of sbatch (SBATCH_GRES) and in #SBATCH lines are kept. \
Standard output and exit code are those of sbatch; added options are printed to \
standard error, unless --quiet is given. No manager is needed.\n\n\
A job with shards that runs out of GPU memory is requeued with more shards, under \
the same job number.\n\n\
Examples:\n  carma sbatch --gpu-mem 12GiB train.sh\n  \
carma sbatch --model resnet50.txt --batch-size 64 -p gpu --time 4:00:00 train.sh\n  \
carma sbatch --dry-run train.sh"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Options of sbatch, the script and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SBATCH")]
    words: Vec<String>,
}

pub(crate) fn run(arguments: Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let mut line = Line::read(&arguments.words, takes_value);
    let options = arguments.options.or(Options::take_from(&mut line)?);
    let sbatch = carma_gpu::find_program("sbatch".as_ref());
    let sbatch = sbatch.context("sbatch is not in PATH: this machine has no Slurm, or its module is not loaded")?;
    let batch = Batch::read(&line)?;
    let text = batch.text();
    let request = Request::new(&line.options, |name| std::env::var(name).ok(), &options::of_script(&text));
    let job = need::job_request(&batch.name, &text, &batch.arguments, &options)?;
    let slurm = Commands::default();
    let kinds = site::kinds(&slurm.nodes()?, &partitions(&slurm, &request)?.iter().map(String::as_str).collect::<Vec<_>>());
    let need = if plan::depends_on_need(&request, &job.resources, &kinds) { need::find(&job)? } else { None };
    let facts = Facts {
        request: &request,
        resources: &job.resources,
        need: need.as_ref(),
        margin: Config::default().admission.margin,
        kinds: &kinds,
        gpu_memory: options.gpu_memory,
        settings: &slurm.settings()?,
        retries: options.oom_retries.unwrap_or(RETRIES),
    };
    let plan = Plan::of(&facts)?;
    let submission = Submission { batch: &batch, line: &line, plan: &plan };
    if options.dry_run {
        view::dry_run(&submission, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if request.first(&["quiet"]).is_none() {
        for note in view::notes(&plan) {
            eprintln!("carma: {note}");
        }
    }
    submission.submit(&sbatch)
}

/// The partitions that the job may go to: those it names, or Slurm's default.
fn partitions(slurm: &Commands, request: &Request) -> Result<Vec<String>> {
    let all = slurm.partitions()?;
    if let Some(named) = request.value("partition") {
        let named: Vec<String> = named.split(',').map(str::to_owned).collect();
        if let Some(unknown) = named.iter().find(|name| all.iter().all(|partition| partition.name != **name)) {
            bail!("Slurm has no partition {unknown:?}");
        }
        return Ok(named);
    }
    let default: Vec<String> = all.into_iter().filter(|partition| partition.is_default).map(|partition| partition.name).collect();
    ensure!(!default.is_empty(), "Slurm has no default partition: name one with --partition");
    Ok(default)
}
