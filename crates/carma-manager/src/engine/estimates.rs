//! What jobs will need: remembered from earlier runs at once, and worked out by others where it takes longer.
//!
//! A description or a script is the user's file, so it is read by a process of the user's, never by the manager itself.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{Estimate, JobId, MemoryEstimate, MiB, PerRank};
use carma_estimate::history::{History, Measured, Recalled, Signature};
use serde::{Deserialize, Serialize};

use super::handle::Reply;
use super::input::Input;
use crate::api::Forecast;
use crate::configuration::{DryRun, EstimateSettings};
use crate::request::{JobCommand, JobRequest, Owner};

/// Estimates at the same time: they take the host's cores from jobs that run.
const THREADS: usize = 2;
/// A description is read in no time, or something is wrong.
const STATIC_LIMIT: Duration = Duration::from_secs(30);

/// What an estimator found out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Estimated {
    #[serde(flatten)]
    pub(super) estimate: Estimate,
    /// Who says so: `history`, `static`, `dry-run`; unset: nobody knows.
    pub(super) source: Option<String>,
    /// What its user should know of it.
    pub(super) notes: Vec<String>,
}

/// What is remembered of earlier runs, in a file that grows by a line a run.
#[derive(Debug)]
pub(super) struct Memory {
    history: History,
    path: PathBuf,
}

impl Memory {
    /// Reads the file. One that is damaged teaches nothing, and is put aside.
    pub(super) fn open(path: PathBuf) -> Self {
        let history = File::open(&path).ok().and_then(|file| History::read(file).ok());
        if history.is_none() && path.exists() {
            let _ = fs::rename(&path, path.with_extension("damaged"));
        }
        let memory = Self { history: history.unwrap_or_default(), path };
        // Only the latest runs of each job are remembered: what is forgotten goes from the file too.
        let new = memory.path.with_extension("new");
        let written = File::create(&new).is_ok_and(|file| memory.history.write(file).is_ok());
        if written {
            let _ = fs::rename(new, &memory.path);
        }
        memory
    }

    pub(super) fn recall(&self, request: &JobRequest) -> Option<Estimated> {
        let Recalled { memory, memory_upper, utilisation, duration, .. } = self.history.recall(&signature(request))?;
        let memory = MemoryEstimate { expected: memory, upper: memory_upper };
        let estimate = Estimate { memory: Some(PerRank::Same(memory)), utilisation: Some(utilisation), sharing: None, duration };
        Some(Estimated { estimate, source: Some("history".to_owned()), notes: Vec::new() })
    }

    /// Learns from a run. A disk that is full forgets it with the next start.
    pub(super) fn learn(&mut self, request: &JobRequest, run: Measured) {
        let signature = signature(request);
        self.history.record(signature, run);
        let mut one = History::default();
        one.record(signature, run);
        let mut lines = Vec::new();
        if one.write(&mut lines).is_ok() {
            let line = lines.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default().to_owned();
            let _ = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(&line));
        }
    }
}

/// What makes two jobs the same: what is run, where, on how many GPUs, and what is said of the model.
fn signature(request: &JobRequest) -> Signature {
    let mut words = match &request.command {
        JobCommand::Program(words) => words.clone(),
        JobCommand::Script { text, arguments } => std::iter::once(text).chain(arguments).cloned().collect(),
    };
    words.extend(request.hints.model.as_ref().map(|model| model.display().to_string()));
    words.extend(request.hints.batch.map(|batch| batch.to_string()));
    words.extend(request.array.iter().flat_map(|label| label.parameters.values().cloned()));
    Signature::of_command(&words, &request.directory).on_gpus(request.resources.gpus.into())
}

/// How a job is to be estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// From a description of its model.
    Static,
    /// By running its script without a GPU.
    DryRun,
}

/// How this job is to be estimated, of which memory knows nothing.
pub(super) fn method(request: &JobRequest, settings: &EstimateSettings) -> Option<Method> {
    let wanted = match settings.dry_run {
        DryRun::Never => false,
        DryRun::Asked => request.hints.dry_run,
        DryRun::Always => request.hints.dry_run || (request.resources.memory.is_none() && request.hints.model.is_none()),
    };
    match request.resources.gpus {
        0 => None,
        _ if wanted && python_script(request).is_some() => Some(Method::DryRun),
        _ => request.hints.model.as_ref().map(|_| Method::Static),
    }
}

/// The Python program and what it is called with, where that is what the job runs.
fn python_script(request: &JobRequest) -> Option<(&str, &[String])> {
    let JobCommand::Program(words) = &request.command else { return None };
    let (program, rest) = words.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    (name.starts_with("python") && !rest.is_empty()).then_some((program.as_str(), rest))
}

/// What an estimate is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A job that waits for it.
    Job(JobId),
    /// Somebody wants to know what would become of these.
    Forecast { jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>> },
}

/// A job to estimate.
#[derive(Debug)]
pub(super) struct EstimateOrder {
    pub(super) purpose: Purpose,
    pub(super) request: JobRequest,
    pub(super) owner: Owner,
    pub(super) method: Method,
}

/// The estimating threads. Dropped, they end.
#[derive(Debug)]
pub(super) struct Estimators(Sender<Box<EstimateOrder>>);

impl Estimators {
    pub(super) fn start(program: &Path, settings: &EstimateSettings, inputs: &Sender<Input>) -> io::Result<Self> {
        let (orders, waiting) = channel::<Box<EstimateOrder>>();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..THREADS {
            let (program, settings) = (program.to_owned(), settings.clone());
            let (waiting, inputs): (Arc<Mutex<Receiver<_>>>, _) = (Arc::clone(&waiting), inputs.clone());
            thread::Builder::new().name("estimates".to_owned()).spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(order) = next else { return };
                    let estimated = estimate(&program, &settings, &order)
                        .unwrap_or_else(|reason| Estimated { notes: vec![reason], ..Estimated::default() });
                    if inputs.send(Input::Estimated(order.purpose, order.owner, Box::new(estimated))).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Self(orders))
    }

    pub(super) fn estimate(&self, order: EstimateOrder) {
        let _ = self.0.send(Box::new(order));
    }
}

/// What `carma estimate --json` answers, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Answer {
    estimator: String,
    memory_mib: f64,
    upper_mib: f64,
    #[serde(default)]
    utilisation: Option<carma_estimate::utilisation::Utilisation>,
    #[serde(default)]
    notes: Vec<String>,
}

fn estimate(program: &Path, settings: &EstimateSettings, order: &EstimateOrder) -> Result<Estimated, String> {
    let EstimateOrder { request, owner, method, .. } = order;
    let mut command = Command::new(program);
    let limit = match method {
        Method::Static => {
            command.arg("estimate").args(&request.hints.model);
            STATIC_LIMIT
        }
        Method::DryRun => {
            command.arg("trace-memory").arg("--time-limit").arg(settings.dry_run_seconds.to_string());
            command.arg("--gpus").arg(request.resources.gpus.to_string());
            if let Some(model) = &request.hints.model {
                command.arg("--model").arg(model);
            }
            // It says itself when its time is up; this is for what does not listen.
            Duration::from_secs(settings.dry_run_seconds) + STATIC_LIMIT
        }
    };
    command.arg("--json");
    if let Some(batch) = request.hints.batch {
        command.arg("--batch").arg(batch.to_string());
    }
    if let (Method::DryRun, Some((interpreter, script))) = (method, python_script(request)) {
        let python = if interpreter.contains('/') { Path::new(interpreter) } else { &settings.python };
        command.arg("--python").arg(python).arg("--").args(script);
    }
    command.env_clear().envs(&request.environment).current_dir(&request.directory).process_group(0);
    if nix::unistd::geteuid().is_root() && owner.uid != 0 {
        command.uid(owner.uid).gid(owner.gid);
    }
    let (output, errors) = finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), limit)?;
    let answer: Answer = serde_json::from_slice(&output).map_err(|error| {
        // Whoever fails says why last.
        let said = errors.lines().last().map_or_else(|| error.to_string(), |line| line.trim_start_matches("carma: ").to_owned());
        format!("no estimate: {}", said.chars().take(300).collect::<String>())
    })?;
    Ok(answer.into())
}

impl From<Answer> for Estimated {
    fn from(answer: Answer) -> Self {
        let mib = |value: f64| MiB(value.max(0.0).ceil() as u64);
        let (expected, upper) = (mib(answer.memory_mib), mib(answer.upper_mib.max(answer.memory_mib)));
        let utilisation = answer.utilisation.map(Into::into);
        let memory = Some(PerRank::Same(MemoryEstimate { expected, upper }));
        Self {
            estimate: Estimate { memory, utilisation, sharing: None, duration: None },
            source: Some(answer.estimator),
            notes: answer.notes,
        }
    }
}

/// Runs a command to its end, or kills it when its time is up; what it said is bounded.
fn finish(command: &mut Command, limit: Duration) -> Result<(Vec<u8>, String), String> {
    const MOST: u64 = 4 << 20;
    let mut child = command.spawn().map_err(|error| format!("cannot run the estimator: {error}"))?;
    let drain = |stream: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                let _ = stream.by_ref().take(MOST).read_to_end(&mut bytes);
                let _ = io::copy(&mut stream, &mut io::sink());
            }
            bytes
        })
    };
    let output = drain(child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let errors = drain(child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let in_time = wait(&mut child, limit);
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    if in_time {
        Ok((output, String::from_utf8_lossy(&errors).into_owned()))
    } else {
        Err(format!("no estimate within {} s", limit.as_secs()))
    }
}

fn wait(child: &mut Child, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
            _ => {
                // It is the first of a group of its own, which goes with it.
                let group = rustix::process::Pid::from_child(child);
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                let _ = child.wait();
                return false;
            }
        }
    }
}
