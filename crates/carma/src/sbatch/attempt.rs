//! `carma sbatch-run`: one attempt of a job, inside Slurm's allocation.

use std::env;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use carma_core::{MiB, Verdict};
use carma_manager::attempt::Exit;
use carma_manager::judge::{Evidence, Judgement, verdict};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use super::arguments::memory;
use super::requeue::RequeuedJob;
use super::site::ShardedGpu;
use super::wrapper::{Recovery, interpreter, unwrapped};

/// As much of the end of the output is judged as the manager judges.
const JUDGED: u64 = 256 << 10;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The number of the line before the user's script
    #[arg(long)]
    mark: u32,
    /// The shards of a GPU
    #[arg(long)]
    shards_of_gpu: u64,
    /// The memory of a GPU
    #[arg(long, value_parser = memory)]
    gpu_memory: MiB,
    /// How often the job may be restarted
    #[arg(long)]
    oom_retries: u32,
    /// Slurm's copy of the script, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

/// Runs the script, and puts the job back into the queue with more shards if it ran out of GPU memory.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let RunArguments { mark, shards_of_gpu, gpu_memory, oom_retries, words } = arguments;
    let (copy, words) = words.split_first().context("there is no script")?;
    let script = Script::unpack(Path::new(copy), *mark)?;
    let outputs = Outputs::now();
    let (status, ended_by_order) = script.run(words)?;
    let judgement = outputs.judge(status);
    if judgement.verdict == Verdict::OutOfMemory && !ended_by_order {
        let gpu = ShardedGpu { shards: *shards_of_gpu, memory: *gpu_memory };
        let requeue = RequeuedJob::from_environment(Recovery { gpu, retries: *oom_retries }, |name| env::var(name).ok());
        requeue.after(&judgement, say);
    }
    drop(script);
    Ok(exit_as(status))
}

/// A line about the job in its own output.
fn say(text: &str) {
    // A full disk must not change how the job ends.
    let _ = writeln!(std::io::stderr(), "[carma: {text}]");
}

/// The user's script, in a folder that goes when this is dropped.
#[derive(Debug)]
struct Script {
    file: PathBuf,
    interpreter: Vec<String>,
    _folder: TempDir,
}

impl Script {
    fn unpack(copy: &Path, mark: u32) -> Result<Self> {
        let text = fs::read(copy).with_context(|| format!("cannot read {}", copy.display()))?;
        let script = unwrapped(&text, mark).with_context(|| format!("{} holds no script", copy.display()))?;
        let folder = tempfile::Builder::new().prefix("carma-").tempdir().context("cannot create a temporary folder")?;
        // The name that the script would have without us.
        let file = folder.path().join("slurm_script");
        fs::write(&file, script).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { file, interpreter: interpreter(script), _folder: folder })
    }

    /// Runs it to its end. True if Slurm or a user ended it.
    fn run(&self, words: &[std::ffi::OsString]) -> Result<(ExitStatus, bool)> {
        let (program, argument) = self.interpreter.split_first().context("the script does not name its interpreter")?;
        let mut command = Command::new(program);
        command.args(argument).arg(&self.file).args(words);
        // Before the start, so that no signal is lost.
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT]).context("cannot handle signals")?;
        let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        let forwarding = Forwarding::start(signals, &child);
        let status = child.wait().context("cannot wait for the script")?;
        Ok((status, forwarding.stop()))
    }
}

/// Passes signals on to the script. Slurm sends some to the batch process only (`--signal=B:USR1@60`), which is us.
#[derive(Debug)]
struct Forwarding {
    ended: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Forwarding {
    fn start(mut signals: Signals, child: &Child) -> Self {
        let (ended, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (term, done) = (Arc::clone(&ended), Arc::clone(&over));
        // Goes on after the script's end: SIGTERM must not end us while we requeue the job.
        thread::spawn(move || {
            for number in signals.forever() {
                if done.load(Ordering::SeqCst) {
                    continue;
                }
                term.fetch_or([SIGTERM, SIGINT].contains(&number), Ordering::SeqCst);
                let _ = Signal::from_named_raw(number).zip(pid).map(|(signal, pid)| kill_process(pid, signal));
            }
        });
        Self { ended, over }
    }

    /// No signal is passed on any more. True if one was to end the script.
    fn stop(self) -> bool {
        self.over.store(true, Ordering::SeqCst);
        self.ended.load(Ordering::SeqCst)
    }
}

/// The files that the output goes to, and how long they were before. The script writes to them itself, so its output is as it would be without us.
#[derive(Debug)]
struct Outputs {
    stdout: Option<(PathBuf, u64)>,
    stderr: Option<(PathBuf, u64)>,
}

impl Outputs {
    fn now() -> Self {
        let file = |number: u32| {
            let path = PathBuf::from(format!("/proc/self/fd/{number}"));
            let facts = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            Some((path, facts.len(), (facts.dev(), facts.ino())))
        };
        let (stdout, stderr) = (file(1), file(2));
        // Slurm writes both to one file unless it is told otherwise.
        let same = matches!((&stdout, &stderr), (Some((.., a)), Some((.., b))) if a == b);
        let place = |(path, length, _)| (path, length);
        Self { stdout: stdout.filter(|_| !same).map(place), stderr: stderr.map(place) }
    }

    fn judge(&self, status: ExitStatus) -> Judgement {
        let exit = status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal));
        let (stdout, stderr) = (end_of(self.stdout.as_ref()), end_of(self.stderr.as_ref()));
        verdict(&Evidence { exit, stdout: &stdout, stderr: &stderr, ..Evidence::default() })
    }
}

/// The end of what was written to a file; nothing if that cannot be read.
fn end_of(file: Option<&(PathBuf, u64)>) -> Vec<u8> {
    let read = |(path, before): &(PathBuf, u64)| {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(JUDGED).max(*before).min(length)))?;
        let mut end = Vec::new();
        file.take(JUDGED).read_to_end(&mut end)?;
        std::io::Result::Ok(end)
    };
    file.and_then(|file| read(file).ok()).unwrap_or_default()
}

/// Ends as the script has ended, also by a signal, so that Slurm shows what it would show without us.
fn exit_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return ExitCode::from(128_u8.wrapping_add(signal as u8));
    }
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
