//! `carma submit`: from flags, scripts and files to jobs.

mod copy;
mod dry_run;
mod flags;
mod hint;
mod missing;
mod view;

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{IsTerminal, Read, Write, stdin};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use carma_core::JobId;
use carma_manager::api::{JobDetail, Submission, Submitted};
use carma_manager::client::Client;
use carma_manager::submission::{Caller, ParsedSubmission, Source, ValidSubmission};
use carma_manager::umask::Umask;
use clap::Args;
use jiff::Zoned;

use crate::manager::{JobEnds, Manager, attach, end_text, exit_code, write_json};
use copy::Copies;
use flags::Flags;

/// The largest file that is read as a script or job file.
const LARGEST_FILE: u64 = 4 << 20;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(
    override_usage = "carma submit [FLAGS] -- COMMAND [ARGUMENT]...\n       carma submit [FLAGS] SCRIPT [-- ARGUMENT]...\n       carma submit [FLAGS] FILE...",
    after_help = "\
A script begins with #!. It can set options in lines before its first command: \
#CARMA --gpus 2. #SBATCH lines are read too, as far as they mean the same here. \
A job file is TOML: its keys are the names of the options, and command = \
[\"python\", \"train.py\"] is the command. Several [[job]] tables share the keys \
above them. A .rad file is a task file of the CARMA prototype. Options in the \
command line override those in files.\n\n\
Relative paths of --workdir, --venv and --model start in the present folder.\n\n\
Examples:\n  carma submit --mem 20GiB -- python train.py\n  carma submit --array 1-10%3 --wait job.sh\n  \
carma submit --param lr=0.1,0.01 --snapshot -- python train.py --lr {lr}"
)]
pub(crate) struct Arguments {
    /// Scripts, job files (.toml) or task files (.rad); - is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// The command and its arguments. No shell interprets it. After a script: the arguments of the script.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    flags: Flags,
    /// Show the job, its estimate and where it would run now; submit nothing.
    #[arg(long, conflicts_with_all = ["wait", "quiet"])]
    dry_run: bool,
    /// Wait until all jobs have ended; the exit code is that of `carma wait`.
    #[arg(long, conflicts_with = "interactive")]
    wait: bool,
    /// Print only the job numbers, one per line.
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON. A dry run hides values that look like secrets.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: Manager,
}

/// Output form of accepted jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Text,
    Numbers,
    Json,
}

pub(crate) fn run(arguments: Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let Arguments { files, command, flags: Flags(flags), dry_run, wait, quiet, json, manager } = arguments;
    let caller = caller()?;
    let mut parsed: Vec<ParsedSubmission> = Vec::new();
    let mut take = |source: Source<'_>| -> Result<()> {
        let missing =
            if let Source::Text { name, text, .. } = &source { missing::commands(name, text, &caller.environment) } else { Vec::new() };
        let (submissions, notes) = source.submissions(&flags, &caller)?;
        for note in notes.into_iter().chain(missing) {
            eprintln!("carma: {note}");
        }
        parsed.extend(submissions);
        Ok(())
    };
    if files.is_empty() {
        take(Source::Command(command))?;
    } else if let Some(given) = script_arguments(&files, &command) {
        let text = read(&files[0], &files)?;
        eprintln!("carma: arguments of {}: {}", files[0], hint::quoted_words(given));
        take(Source::Text { name: &files[0], text: &text, arguments: given.to_vec() })?;
    } else {
        for name in &files {
            take(Source::Text { name, text: &read(name, &files)?, arguments: command.clone() })?;
        }
    }
    parsed.iter().try_for_each(ParsedSubmission::check_files)?;
    let submissions: Vec<ValidSubmission> = parsed.into_iter().map(ParsedSubmission::into_valid).collect();
    submissions.iter().filter_map(|submission| missing::conda(&submission.as_sent().job)).for_each(|warning| eprintln!("carma: {warning}"));
    if dry_run {
        return dry_run::run(&submissions, &manager, json, output);
    }
    let submissions: Vec<Submission> = submissions.into_iter().map(ValidSubmission::into_sent).collect();
    let interactive = submissions.iter().any(|submission| submission.job.interactive);
    let single = matches!(submissions.as_slice(), [Submission { array: None, parameters, .. }] if parameters.is_empty());
    ensure!(single || !interactive, "one terminal is for one interactive job: submit it alone");
    ensure!(
        !interactive || has_input(),
        "an interactive job needs input, from a terminal or a pipe: leave out --interactive, or run this in a terminal"
    );
    let mut client = manager.connect().context("nothing was submitted")?;
    let answer = match (quiet, json) {
        (true, _) => Answer::Numbers,
        (_, true) => Answer::Json,
        _ => Answer::Text,
    };
    let jobs = submit(&mut client, submissions, answer, output)?;
    match jobs.as_slice() {
        [job] if interactive => attach(client, (*job).into()),
        _ if wait => {
            let ends = JobEnds { client: &mut client, jobs: jobs.into_iter(), until: None }.collect::<Result<Vec<_>, _>>()?;
            for job in ends.iter().flatten().filter(|_| answer == Answer::Text) {
                eprintln!("carma: {}", end_text(job));
            }
            Ok(exit_code(ends.iter().flatten().filter_map(JobDetail::outcome)))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Submits one after the other, and prints the accepted ones, even if a later one is refused.
fn submit(client: &mut Client, submissions: Vec<Submission>, answer: Answer, output: &mut impl Write) -> Result<Vec<JobId>> {
    let mut all = Submitted { jobs: Vec::new(), notes: Vec::new() };
    let mut copies = Copies::default();
    let mut accept = |submission: Submission| -> Result<()> {
        let submission = copies.copied(client, submission)?;
        let accepted = copies.submit(client, &submission)?;
        match answer {
            Answer::Text => writeln!(output, "{}", view::accepted(&submission, &accepted.jobs))?,
            Answer::Numbers => {
                view::labels(&submission, &accepted.jobs).iter().try_for_each(|job| writeln!(output, "{}", job.short()))?;
            }
            Answer::Json => {}
        }
        output.flush()?;
        if answer != Answer::Json {
            accepted.notes.iter().for_each(|note| eprintln!("carma: {note}"));
        }
        all.jobs.extend(accepted.jobs);
        all.notes.extend(accepted.notes);
        Ok(())
    };
    let end = submissions.into_iter().try_for_each(&mut accept);
    if answer == Answer::Json && !all.jobs.is_empty() {
        write_json(&all, output)?;
    }
    end.map(|()| all.jobs)
}

/// Whether anything can come from standard input: `/dev/null` has nothing, and a shell would wait for ever.
fn has_input() -> bool {
    let is_device = std::fs::metadata("/dev/stdin").is_ok_and(|input| input.file_type().is_char_device());
    stdin().is_terminal() || !is_device
}

/// The words after a script, if they are its arguments, as for sbatch: not all of them are files with jobs.
fn script_arguments<'a>(files: &'a [String], command: &[String]) -> Option<&'a [String]> {
    let (script, words) = files.split_first().filter(|(_, words)| !words.is_empty() && command.is_empty())?;
    (is_script(script) && !words.iter().all(|word| word == "-" || is_script(word) || is_job_file(word))).then_some(words)
}

/// Whether it is the name of a file that begins with `#!`.
fn is_script(name: &str) -> bool {
    let mut mark = [0; 2];
    File::open(name).and_then(|mut file| file.read_exact(&mut mark)).is_ok() && mark == *b"#!"
}

fn is_job_file(name: &str) -> bool {
    let path = Path::new(name);
    path.is_file() && path.extension().is_some_and(|extension| extension == "toml" || extension == "rad")
}

/// Reads a file; the error explains missing dashes before a command.
fn read(name: &str, files: &[String]) -> Result<String> {
    let mut bytes = Vec::new();
    if name == "-" {
        stdin().lock().take(LARGEST_FILE + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        if !Path::new(name).exists() || Path::new(name).is_dir() {
            bail!("there is not a file {name:?}; {}", hint::as_command(files));
        }
        let file = File::open(name).with_context(|| format!("cannot read {name}"))?;
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    }
    ensure!(bytes.len() as u64 <= LARGEST_FILE, "{name} has more than 4 MiB, which no script or job file has");
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is no script or job file; {}", hint::as_command(files)))?;
    if let Some(interpreter) = hint::missing_interpreter(name, &text) {
        bail!(
            "{name} is a program for {interpreter}, and no script with #! in its first line; {}",
            hint::with_interpreter(interpreter, files)
        );
    }
    Ok(text)
}

/// Our folder, environment and umask, and our clock. Variables that are not text cannot be kept in a request, and are reported.
pub(crate) fn caller() -> Result<Caller> {
    let mut environment = BTreeMap::new();
    for (name, value) in env::vars_os() {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                environment.insert(name, value);
            }
            (Ok(name), Err(_)) => eprintln!("carma: {name} is not in the job's environment: not text in UTF-8"),
            (Err(name), _) => eprintln!("carma: {} is not in the job's environment: not text in UTF-8", name.display()),
        }
    }
    let directory = env::current_dir().context("cannot find the present folder")?;
    Ok(Caller { directory, environment, umask: Umask::of_this_process(), now: Zoned::now })
}
