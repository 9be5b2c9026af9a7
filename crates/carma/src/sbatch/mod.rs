//! `carma sbatch`: a script for Slurm, with the shards and the host memory that it needs.
//!
//! ```text
//!  command line, SBATCH_ variables, #SBATCH lines ─► options, given ─┐
//!  history, description, dry run ─► need ────────────────────────────┼─► plan ─► sbatch ─► wrapper ─► attempt ─► raise, comeback
//!  scontrol show node ─► site ───────────────────────────────────────┘           (in the job)
//! ```

mod attempt;
mod comeback;
mod given;
mod need;
mod options;
mod plan;
mod raise;
mod site;
mod submission;
mod view;
mod wrapper;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use carma_core::{Config, MiB};
use carma_manager::slurm::Commands;
use clap::{Args, Command, FromArgMatches};

pub(crate) use self::attempt::{RunArguments, run as run_attempt};
use self::given::Request;
use self::options::Line;
use self::plan::{Facts, Plan};
use self::submission::{Batch, Submission};
use crate::units::bytes;

/// Restarts after out-of-memory errors, unless the user says otherwise.
const RETRIES: u32 = 3;

#[derive(Debug, Args)]
#[command(
    override_usage = "carma sbatch [OPTIONS] [OPTIONS OF SBATCH] SCRIPT [ARGUMENT]...\n       carma sbatch [OPTIONS] [OPTIONS OF SBATCH] --wrap COMMAND",
    after_help = "\
The options above may stand anywhere before the script. Every other option goes \
to sbatch as it is; the first word that belongs to no option is the script. \
What the command line, variables of sbatch (SBATCH_GRES) or #SBATCH lines \
request is kept. sbatch's own answer is the only output, and its exit code \
that of this command; what was added is said on standard error, unless \
--quiet is given. No manager is needed.\n\n\
A job with shards that runs out of GPU memory goes back into the queue under \
its own number with more shards.\n\n\
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

/// Our own options.
#[derive(Debug, Default, Args)]
struct Options {
    /// GPU memory that it needs: 12GiB, or a bare number of MiB. (--mem is sbatch's,
    /// for host memory.)
    #[arg(long, value_name = "SIZE")]
    gpu_mem: Option<String>,
    /// What describes its model, to estimate its memory by.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Samples a step, for the estimate.
    #[arg(long, value_name = "N")]
    batch_size: Option<u32>,
    /// dry-run: run the script's Python command without a GPU first and see what it
    /// allocates.
    #[arg(long, value_name = "HOW")]
    estimate: Option<String>,
    /// Memory of a GPU of the site, if its type in Slurm does not tell.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    gpu_memory: Option<MiB>,
    /// Start it again with more shards after it ran out of GPU memory, so many times
    /// [default: 3].
    #[arg(long, value_name = "N")]
    oom_retries: Option<u32>,
    /// Say what would be submitted and why, and submit nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Options {
    /// These options, where they are not given here.
    fn or(self, other: Self) -> Self {
        Self {
            gpu_mem: self.gpu_mem.or(other.gpu_mem),
            model: self.model.or(other.model),
            batch_size: self.batch_size.or(other.batch_size),
            estimate: self.estimate.or(other.estimate),
            gpu_memory: self.gpu_memory.or(other.gpu_memory),
            oom_retries: self.oom_retries.or(other.oom_retries),
            dry_run: self.dry_run || other.dry_run,
        }
    }

    /// Takes our options out of a line for sbatch.
    fn take_from(line: &mut Line) -> Result<Self> {
        let ours = |name: &str| takes_value(name).is_some();
        let (own, others) = std::mem::take(&mut line.options).into_iter().partition(|given| ours(&given.name));
        line.options = others;
        let own: Vec<options::Given> = own;
        let words = own.into_iter().flat_map(|given| given.words);
        let command = Self::augment_args(Command::new("carma sbatch").no_binary_name(true));
        Ok(Self::from_arg_matches(&command.try_get_matches_from(words)?)?)
    }
}

/// Whether an option of ours has a value.
fn takes_value(name: &str) -> Option<bool> {
    let command = Options::augment_args(Command::new(""));
    let found = command.get_arguments().find(|argument| argument.get_long() == Some(name));
    found.map(|argument| argument.get_action().takes_values())
}

fn memory(text: &str) -> Result<MiB, String> {
    match bytes(text)? >> 20 {
        0 => Err(format!("`{text}` is less than 1 MiB")),
        size => Ok(MiB(size)),
    }
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
        view::notes(&plan).iter().for_each(|note| eprintln!("carma: {note}"));
    }
    submission.submit(&sbatch)
}

/// The partitions that the job may go to: those it names, or Slurm's default.
fn partitions(slurm: &Commands, request: &Request) -> Result<Vec<String>> {
    let all = slurm.partitions()?;
    match request.value("partition") {
        Some(named) => {
            let named: Vec<String> = named.split(',').map(str::to_owned).collect();
            if let Some(unknown) = named.iter().find(|name| all.iter().all(|partition| partition.name != **name)) {
                bail!("Slurm has no partition {unknown:?}");
            }
            Ok(named)
        }
        None => {
            let default: Vec<String> = all.into_iter().filter(|partition| partition.is_default).map(|partition| partition.name).collect();
            ensure!(!default.is_empty(), "Slurm has no default partition: name one with --partition");
            Ok(default)
        }
    }
}
