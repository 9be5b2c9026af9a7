//! The GPU memory that a job needs: as `carma submit` and the manager work it out.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use carma_core::{MemoryEstimate, MiB, UserId};
use carma_format::memory as size;
use carma_manager::engine::earlier_need;
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::submission::{Key, OptionValue, Place, Source};
use serde::Deserialize;

use super::arguments::Options;
use crate::progress::with_spinner;
use crate::submit::caller;

/// The memory that a job needs on each GPU, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) memory: MiB,
    pub(super) known_by: String,
}

/// What `carma estimate --json` answers, as far as needed here.
#[derive(Debug, Deserialize)]
struct Answer {
    estimator: String,
    memory_mib: f64,
    upper_mib: f64,
}

/// The job as `carma submit` would read it: `#CARMA` lines count here too. What CARMA does not understand of `#SBATCH` lines is for Slurm.
pub(super) fn job_request(name: &str, text: &str, arguments: &[String], options: &Options) -> Result<JobRequest> {
    let caller = caller()?;
    let flag = |(option, name): (&str, &str), value: String| {
        let key = Key::find(name)?;
        Ok::<_, anyhow::Error>(OptionValue { key, value, place: Place { key: Some(format!("--{option}")), ..Place::default() } })
    };
    let mut flags = Vec::new();
    let given = [
        (("gpu-mem", "mem"), options.gpu_mem.clone()),
        (("model", "model"), options.model.as_ref().map(|model| model.display().to_string())),
        (("batch-size", "batch"), options.batch_size.map(|batch| batch.to_string())),
        (("estimate", "estimate"), options.estimate.clone()),
    ];
    for (names, value) in given {
        flags.extend(value.map(|value| flag(names, value)).transpose()?);
    }
    let read = |text: &str| Source::Text { name, text, arguments: arguments.to_owned() }.submissions(&flags, &caller);
    let submissions = read(text).or_else(|_| {
        // Without its lines for Slurm, what is wrong is wrong with ours.
        let own: Vec<&str> = text.lines().filter(|line| !line.starts_with("#SBATCH")).collect();
        read(&own.join("\n"))
    });
    let first = submissions?.0.into_iter().next().context("the script holds no job")?;
    let mut request = first.into_valid().into_sent().job;
    // Runs of the same script are known by its whole text.
    request.command = JobCommand::Script { text: text.to_owned(), arguments: arguments.to_owned() };
    Ok(request)
}

/// The need of a job, if anything is known about it.
pub(super) fn find(request: &JobRequest) -> Result<Option<Need>> {
    let user = UserId(rustix::process::geteuid().as_raw());
    let earlier = earlier_need(&Places::own().state, request, user);
    if let Some(need) = from_user_or_history(request.resources.memory, earlier) {
        return Ok(Some(need));
    }
    let hints = &request.hints;
    let batch: Vec<String> = hints.batch.iter().flat_map(|batch| ["--batch".to_owned(), batch.to_string()]).collect();
    let answer = match (&hints.model, hints.dry_run) {
        (None, false) => return Ok(None),
        (Some(model), false) => {
            ask(&[&["estimate".to_owned(), "--json".to_owned()], &batch[..], &["--".to_owned(), text(model)]].concat())?
        }
        (model, true) => {
            let JobCommand::Script { text: script, arguments } = &request.command else { bail!("only a script can be dry-run") };
            let command = python_command(script, arguments)
                .context("the script cannot be dry-run: it has not just one command that starts with python and needs no shell")?;
            let (python, script) = command.split_first().context("there is no command")?;
            let gpus = request.resources.gpus.max(1).to_string();
            let model: Vec<String> = model.iter().flat_map(|model| ["--model".to_owned(), text(model)]).collect();
            let words = ["trace-memory", "--json", "--gpus", &gpus, "--python", python].map(str::to_owned);
            ask(&[&words[..], &batch, &model, &["--".to_owned()], script].concat())?
        }
    };
    let mib = |value: f64| MiB(value.max(0.0).ceil() as u64);
    let (expected, upper) = (mib(answer.memory_mib), mib(answer.upper_mib.max(answer.memory_mib)));
    Ok(Some(Need { memory: upper, known_by: format!("estimated at {} ({}), at most {}", size(expected), answer.estimator, size(upper)) }))
}

/// A declaration counts, unless earlier runs needed more.
fn from_user_or_history(declared: Option<MiB>, earlier: Option<MemoryEstimate>) -> Option<Need> {
    match (declared, earlier) {
        (Some(declared), Some(earlier)) if declared < earlier.expected => {
            let known_by =
                format!("{} declared, but earlier runs took {}, at most {}", size(declared), size(earlier.expected), size(earlier.upper));
            Some(Need { memory: earlier.upper, known_by })
        }
        (Some(declared), _) => Some(Need { memory: declared, known_by: format!("{} declared", size(declared)) }),
        (None, Some(earlier)) => {
            let known_by = format!("earlier runs took {}, at most {}", size(earlier.expected), size(earlier.upper));
            Some(Need { memory: earlier.upper, known_by })
        }
        (None, None) => None,
    }
}

/// Asks an estimator, in a process of its own as the manager does: a parser that crashes harms nothing.
fn ask(words: &[String]) -> Result<Answer> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = with_spinner("estimating", || command.output()).context("cannot estimate")?;
    ensure!(output.status.success(), "nothing was submitted: without an estimate; declare the memory with --gpu-mem SIZE");
    // A script that is dry-run may print something first.
    let begins = output.stdout.windows(2).rposition(|pair| pair == b"\n{").map_or(0, |line| line + 1);
    serde_json::from_slice(&output.stdout[begins..]).context("the estimate cannot be read")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The one command of a script that starts with Python, if no shell is needed for it.
fn python_command(script: &str, arguments: &[String]) -> Option<Vec<String>> {
    let joined = script.replace("\\\n", " ");
    let commands = joined.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(|line| {
        let words = shlex::split(line)?;
        let words: Vec<String> = words.into_iter().skip_while(|word| ["exec", "srun", "time"].contains(&word.as_str())).collect();
        let program = Path::new(words.first()?).file_name()?.to_str()?;
        (program.starts_with("python") && words.len() > 1).then_some(words)
    });
    let mut commands = commands.collect::<Vec<_>>();
    let only = commands.pop().filter(|_| commands.is_empty())?;
    let words: Vec<String> = only.into_iter().flat_map(|word| if word == "$@" { arguments.to_owned() } else { vec![word] }).collect();
    let for_a_shell = |word: &String| word.contains(['$', '`', ';', '|', '&', '<', '>', '*', '(', ')']);
    (!words.iter().any(for_a_shell)).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_counts_unless_earlier_runs_needed_more() {
        let earlier = Some(MemoryEstimate { expected: MiB(20_000), upper: MiB(21_000) });
        let memory = |declared: Option<u64>, earlier| from_user_or_history(declared.map(MiB), earlier).map(|need| need.memory.0);
        assert_eq!(memory(Some(10_000), None), Some(10_000));
        assert_eq!(memory(Some(10_000), earlier), Some(21_000));
        assert_eq!(memory(Some(30_000), earlier), Some(30_000));
        assert_eq!(memory(None, earlier), Some(21_000));
        assert_eq!(memory(None, None), None);
    }

    #[test]
    fn a_command_for_a_dry_run_needs_no_shell() {
        let command = |script: &str| python_command(script, &["--lr".to_owned(), "1".to_owned()]).map(|words| words.join(" "));
        assert_eq!(
            command("#!/bin/bash\nmodule load x\n# python no\nsrun python3 train.py \\\n  --epochs 2 \"$@\"\n").unwrap(),
            "python3 train.py --epochs 2 --lr 1"
        );
        for script in ["python a.py\npython b.py", "python a.py > log", "python $SCRIPT", "echo", "python"] {
            assert_eq!(command(script), None, "{script}");
        }
    }
}
