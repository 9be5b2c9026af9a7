//! `carma submit`: from flags, scripts and files to requests.

mod flags;
mod view;

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{Read, Write, stdin};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use carma_manager::submission::{Caller, Source, Submission};
use clap::Args;
use jiff::Zoned;

use flags::Flags;

/// The largest file that is read as a script or job file.
const LARGEST_FILE: u64 = 4 << 20;

#[derive(Debug, Args)]
#[command(
    override_usage = "carma submit [FLAGS] -- COMMAND [ARGUMENT]...\n       carma submit [FLAGS] SCRIPT [-- ARGUMENT]...\n       carma submit [FLAGS] FILE...",
    after_help = "\
A script begins with #! and may say in lines before its first command what \
flags would: #CARMA --gpus 2. Of #SBATCH lines is taken what means the same \
here. A job file is TOML: its keys are the flags' names, and command = \
[\"python\", \"train.py\"] is what to run; several [[job]] share what stands \
above them. A .rad file is a task file of CARMA. The flags win over what a \
file says.\n\n\
Relative paths of --workdir, --venv and --model are seen from here."
)]
pub(crate) struct Arguments {
    /// Scripts, job files (.toml) or task files (.rad); - is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// What to run, as it is: no shell looks at it. After a script: what to call
    /// it with.
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
    #[command(flatten)]
    flags: Flags,
    /// Say what would be submitted, and submit nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print requests as JSON; what look like secrets are hidden.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments, output: &mut impl Write) -> Result<()> {
    let Arguments { files, words, flags: Flags(flags), dry_run, json } = arguments;
    let caller = caller()?;
    let mut submissions: Vec<Submission> = Vec::new();
    let mut take = |source: Source<'_>| -> Result<()> {
        let (taken, notes) = source.submissions(&flags, &caller)?;
        for note in notes {
            eprintln!("carma: {note}");
        }
        submissions.extend(taken);
        Ok(())
    };
    if files.is_empty() {
        take(Source::Command(words))?;
    } else {
        for name in &files {
            take(Source::Text { name, text: &read(name)?, arguments: words.clone() })?;
        }
    }
    submissions.iter().try_for_each(Submission::check_files)?;
    ensure!(dry_run, "no manager is running here: see what would be submitted with --dry-run");
    if json { view::json(&submissions, output) } else { view::table(&submissions, output) }
}

/// Reads a file, and tells who forgot the dashes before a command.
fn read(name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    if name == "-" {
        stdin().lock().take(LARGEST_FILE + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        if !Path::new(name).exists() || Path::new(name).is_dir() {
            bail!("there is no file {name:?}; to run a program, put -- before it: carma submit -- {name}");
        }
        let file = File::open(name).with_context(|| format!("cannot read {name}"))?;
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    }
    ensure!(bytes.len() as u64 <= LARGEST_FILE, "{name} has more than 4 MiB, which no script or job file has");
    String::from_utf8(bytes).with_context(|| format!("{name} is no script or job file; to run a program, put -- before it"))
}

/// Where we are, our environment, and the time. Variables that are no text cannot be kept in a request, and are named.
fn caller() -> Result<Caller> {
    let mut environment = BTreeMap::new();
    for (name, value) in env::vars_os() {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                environment.insert(name, value);
            }
            (Ok(name), Err(_)) => eprintln!("carma: {name} is left out of the environment: not text in UTF-8"),
            (Err(name), _) => eprintln!("carma: {} is left out of the environment: not text in UTF-8", name.display()),
        }
    }
    Ok(Caller { directory: env::current_dir().context("cannot say which folder this is")?, environment, now: Zoned::now() })
}
