//! Checks of a request by itself, without looking at the machine.

use std::path::Path;

use carma_core::{JobId, JobSpec, MiB, OnHang, Seconds, SpecError};
use thiserror::Error;

use super::after::check_job;
use super::error::Problem;
use super::sweep;
use crate::request::{Activation, JobCommand, JobRequest, Parameter, Resources, Submission};

/// The longest argument or variable that the kernel accepts.
const MAX_ARGUMENT: usize = 131_071;
/// The longest script.
const MAX_SCRIPT: usize = 4 << 20;
/// The longest name. It must fit into tables and file names (`%x`).
const MAX_NAME: usize = 100;
/// The longest time span, a hundred years. Sums of such spans survive being written and read.
pub(crate) const MAX_SPAN: Seconds = Seconds::from_secs(100 * 365 * 86_400);
/// The beginning of the year 2200, in seconds since 1970: the latest start time.
const LATEST: u64 = 7_258_118_400;
/// The most memory that can be requested. In bytes it still fits into 64 bits.
const MAX_MEMORY: MiB = MiB(1 << 40);

/// A request that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {problem}")]
pub struct InvalidRequest {
    /// The key of the option.
    pub key: &'static str,
    /// What is wrong.
    pub problem: Problem,
}

/// Checks everything that can be checked without looking at the machine.
pub fn check(request: &JobRequest) -> Result<(), InvalidRequest> {
    let under = |key: &'static str| move |problem| InvalidRequest { key, problem };
    let refuse =
        |key, wrong: bool, why: &str| if wrong { Err(InvalidRequest { key, problem: Problem::Refused(why.to_owned()) }) } else { Ok(()) };
    request.name.as_deref().map_or(Ok(()), check_name).map_err(under("name"))?;
    check_command(&request.command).map_err(under("command"))?;
    let no_folder = request.directory.as_os_str().is_empty();
    refuse("workdir", no_folder, "is missing: give the folder to run in, as an absolute path such as /home/ada/project")?;
    check_path(&request.directory).map_err(under("workdir"))?;
    refuse("workdir", !request.directory.is_absolute(), "must be an absolute path")?;
    for (name, value) in &request.environment {
        check_process_variable(name, value).map_err(under("env"))?;
    }
    for (key, path) in [("output", &request.output), ("error", &request.error)] {
        path.as_deref().map_or(Ok(()), check_pattern).map_err(under(key))?;
    }
    match &request.activation {
        Some(Activation::Conda(name)) => check_argument(name).map_err(under("conda"))?,
        Some(Activation::Venv(folder)) => check_path(folder).map_err(under("venv"))?,
        None => {}
    }
    request.image.as_ref().map_or(Ok(()), |image| check_argument(&image.name)).map_err(under("image"))?;
    request.hints.model.as_deref().map_or(Ok(()), check_path).map_err(under("model"))?;
    let resources = &request.resources;
    let spec = JobSpec { gpus: resources.gpus, time_limit: resources.time_limit, ..JobSpec::new(JobId(0)) };
    spec.validate().map_err(|error| {
        let key = if matches!(error, SpecError::ZeroTimeLimit) { "time" } else { "gpus" };
        InvalidRequest { key, problem: Problem::Refused(error.to_string()) }
    })?;
    let no_gpu = resources.gpus == 0;
    refuse("mem", no_gpu && resources.memory.is_some(), "is GPU memory, and the job requests no GPU; give --host-mem")?;
    refuse("exclusive", no_gpu && resources.exclusive, "is for GPUs, and the job requests none")?;
    for (key, memory) in [("mem", resources.memory), ("host-mem", resources.host_memory)] {
        refuse(key, memory.is_some_and(|memory| memory > MAX_MEMORY), "is more than an exbibyte")?;
    }
    for (key, span) in [("time", resources.time_limit), ("idle", resources.idle_limit)] {
        refuse(key, span.is_some_and(|span| span > MAX_SPAN), "is more than a hundred years")?;
    }
    refuse("begin", request.schedule.begin.is_some_and(|begin| begin > LATEST), "is after the year 2199: give a time before that")?;
    refuse("cpus", resources.cpus == Some(0), "a job needs 1 or more")?;
    refuse("at-most", request.schedule.at_most == Some(0), "at least 1 job must be allowed at once")?;
    refuse("batch", request.hints.batch == Some(0), "a step has 1 sample or more")?;
    refuse("interactive", request.interactive && request.array.is_some(), "cannot be used with an array or sweep")?;
    let idle_limit = request.resources.idle_limit;
    let given = idle_limit != Resources::default().idle_limit;
    refuse("idle", !request.interactive && given, "is for interactive jobs: give --interactive as well")?;
    refuse("idle", idle_limit == Some(Seconds::ZERO), "must be more than 0 s")?;
    let restarts = matches!(request.on_hang, OnHang::Restart | OnHang::Fail);
    refuse("on-hang", request.interactive && restarts, "is not for interactive jobs: they are not watched")?;
    request.schedule.after.iter().try_for_each(|after| check_job(&after.job)).map_err(under("after"))
}

/// Checks that a command uses all parameters of its sweep. A script finds them in its environment.
pub(super) fn check_parameters(submission: &Submission) -> Result<(), InvalidRequest> {
    let JobCommand::Program(words) = &submission.job.command else { return Ok(()) };
    let passed = |name: &str| submission.job.environment.keys().any(|variable| *variable == sweep::variable(name));
    let unused = sweep::unused(words, &submission.parameters, |word, variable| mentions(&submission.job.directory.join(word), variable));
    let Some(Parameter { name, .. }) = unused.filter(|parameter| !passed(&parameter.name)) else { return Ok(()) };
    let variable = sweep::variable(name);
    let text = format!(
        "{name} is not used: write {{{name}}} in the command, where its value belongs; for a program that reads {variable}, add --env {variable}="
    );
    Err(InvalidRequest { key: "param", problem: Problem::Refused(text) })
}

/// Whether a program's text has a word in it.
fn mentions(file: &Path, word: &str) -> bool {
    std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() <= MAX_SCRIPT as u64)
        && std::fs::read_to_string(file).is_ok_and(|text| text.contains(word))
}

/// Checks that the files exist that a request names.
pub(super) fn check_files(request: &JobRequest) -> Result<(), InvalidRequest> {
    let missing =
        |key, path: &Path, what: &str| Err(InvalidRequest { key, problem: Problem::Refused(format!("{} {what}", path.display())) });
    if !request.directory.is_dir() {
        return missing("workdir", &request.directory, "is not a folder");
    }
    for (key, pattern) in [("output", &request.output), ("error", &request.error)] {
        let folder = pattern.as_deref().and_then(Path::parent).map(|folder| request.directory.join(folder));
        // A folder with a placeholder is known only when the job starts.
        if let Some(folder) = folder.filter(|folder| !folder.to_string_lossy().contains(['%', '{']) && !folder.is_dir()) {
            return missing(key, &folder, "is not a folder: create it first");
        }
    }
    match (&request.activation, &request.hints.model) {
        (Some(Activation::Venv(folder)), _) if !folder.join("bin/activate").is_file() => {
            missing("venv", folder, "is not a virtual environment: it has no bin/activate")
        }
        (_, Some(model)) if !model.is_file() => missing("model", model, "is not a file"),
        _ => Ok(()),
    }
}

/// Checks a job's name. Names are parts of file names (`%x`), lists (`--after @a,@b:any`) and command lines.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    let expected = "a name: 1 to 100 letters without / , : or control characters, that does not begin with a dash or a dot";
    let bad = |letter: char| letter.is_control() || "/,:".contains(letter);
    let fits = (1..=MAX_NAME).contains(&name.chars().count()) && name.trim() == name;
    if fits && !name.contains(bad) && !name.starts_with(['-', '.']) { Ok(()) } else { Err(Problem::invalid(name, expected)) }
}

fn check_command(command: &JobCommand) -> Result<(), Problem> {
    let refuse = |why: &str| Err(Problem::Refused(why.to_owned()));
    let words = match command {
        JobCommand::Program(words) if words.first().is_none_or(String::is_empty) => {
            return refuse("the command is missing: give it after --, or in a job file as command = [\"python\", \"train.py\"]");
        }
        JobCommand::Program(words) => {
            if let [word] = words.as_slice()
                && let Some((program, _)) = word.split_once(char::is_whitespace)
                && !program.contains('/')
            {
                return refuse(&format!(
                    "{word:?} is one word with spaces and not a program: omit the quotes, or run a shell: sh -c {word:?}"
                ));
            }
            words
        }
        JobCommand::Script { text, .. } if !text.starts_with("#!") => {
            return refuse("a script needs its interpreter in the first line, such as #!/bin/bash");
        }
        JobCommand::Script { text, .. } if text.len() > MAX_SCRIPT => return refuse("a script may have at most 4 MiB"),
        JobCommand::Script { text, .. } if text.contains('\0') => return refuse("a script must be text; this one contains a zero byte"),
        JobCommand::Script { arguments, .. } => arguments,
    };
    words.iter().try_for_each(|word| check_word(word))
}

/// Checks an argument of a process.
fn check_word(word: &str) -> Result<(), Problem> {
    match word {
        _ if word.contains('\0') => Err(Problem::invalid(word, "an argument of a process: it contains a zero byte")),
        _ if word.len() > MAX_ARGUMENT => Err(Problem::invalid(word, "an argument of a process: it has more than 128 KiB")),
        _ => Ok(()),
    }
}

/// Checks a variable. Inherited environments have names that no shell accepts, such as those of Bash's functions.
fn check_process_variable(name: &str, value: &str) -> Result<(), Problem> {
    let bad = |letter: char| letter == '=' || letter.is_control();
    if name.is_empty() || name.contains(bad) {
        return Err(Problem::invalid(name, "a variable's name"));
    }
    if name.len() + value.len() >= MAX_ARGUMENT {
        return Err(Problem::Refused(format!("{name} has more than 128 KiB")));
    }
    // The value may be a secret and is not shown.
    if value.contains('\0') { Err(Problem::Refused(format!("{name} has a zero byte"))) } else { Ok(()) }
}

/// Checks an argument of another program, where a dash would make it a flag.
fn check_argument(name: &str) -> Result<(), Problem> {
    let bad = |letter: char| letter.is_control() || letter.is_whitespace();
    if name.is_empty() || name.starts_with('-') || name.contains(bad) {
        Err(Problem::invalid(name, "a name without spaces that does not begin with a dash"))
    } else {
        Ok(())
    }
}

fn check_path(path: &Path) -> Result<(), Problem> {
    let text = path.to_string_lossy();
    if path.components().any(|part| part.as_os_str() == "~") {
        return Err(Problem::invalid(&text, "a path: only shells expand ~"));
    }
    if text.is_empty() || text.contains(char::is_control) {
        Err(Problem::invalid(&text, "a path without control characters"))
    } else {
        Ok(())
    }
}

/// Checks a path with the placeholders `%j`, `%A`, `%a`, `%x`, `%u`, `%N` and `%%`.
pub(super) fn check_pattern(path: &Path) -> Result<(), Problem> {
    check_path(path)?;
    let text = path.to_string_lossy();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' && !letters.next().is_some_and(|code| "jAaxuN%".contains(code)) {
            return Err(Problem::invalid(
                &text,
                "a file name: % is followed by j (job), A (array), a (array index), x (name), u (user), N (host) or %",
            ));
        }
    }
    Ok(())
}
