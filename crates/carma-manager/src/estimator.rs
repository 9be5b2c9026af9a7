//! Estimates a job in a process of its user, in its environment, under a shim that cleans up. The manager and agents run the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carma_core::{AttemptId, Estimate, JobId, MemoryEstimate, MiB, PerRank, Placement, Seconds};
use carma_estimate::gpu::Gpu;
use serde::{Deserialize, Serialize};

use crate::event::{JobEstimate, MemoryPart};
use crate::host_gpus::LOCAL_SERVER;
use crate::launch::{Assignment, HELPER_LIMITS, HelperFolders, HelperOutput, NotLaunched, look_up, plan, run_as, run_helper_while};
use crate::request::{JobCommand, JobRequest, Owner};
use crate::supervise::{AttemptFolder, LaunchServer};

/// The time limit of a static estimate.
const STATIC_LIMIT: Duration = Duration::from_secs(30);
/// The largest output of an estimator.
const MAX_ANSWER: u64 = 4 << 20;

/// How the last line of a dry run begins whose script failed. The lines before it say why.
pub const DRY_RUN_FAILED: &str = "the dry run of the script failed";

/// Parts of memory, in the order in which training allocates them.
const PARTS: [&str; 7] = ["weights", "gradients", "optimizer", "activations", "workspace", "fragmentation", "context"];

/// Commands that start a Python script once for each GPU. A dry run parses their options itself.
const LAUNCHERS: [&str; 5] = ["torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric"];

/// How a job is to be estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    /// From a description of its model.
    Static,
    /// By running its script without a GPU.
    DryRun,
}

/// A job to estimate, with everything that a host needs to do it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EstimateTask {
    /// Unset: it is not submitted yet.
    pub(crate) job: Option<JobId>,
    pub(crate) request: JobRequest,
    pub(crate) owner: Owner,
    pub(crate) method: Method,
    /// The kind of GPU that it will run on, if known.
    pub(crate) gpu: Option<String>,
    /// The time limit of a dry run.
    pub(crate) seconds: Seconds,
    /// The interpreter of jobs without an environment.
    pub(crate) python: PathBuf,
}

impl EstimateTask {
    /// Its time limit.
    pub(crate) fn limit(&self) -> Duration {
        match self.method {
            Method::Static => STATIC_LIMIT,
            // It ends itself at its time limit; this is for scripts that block.
            Method::DryRun => Duration::from_secs_f64(self.seconds.get()) + STATIC_LIMIT,
        }
    }
}

/// Estimates jobs on this host.
#[derive(Debug)]
pub(crate) struct Estimator {
    program: PathBuf,
    /// One for each running estimate.
    folders: HelperFolders,
    launch_server: Arc<LaunchServer>,
}

impl Estimator {
    /// With a folder for running estimates.
    pub(crate) fn new(program: PathBuf, folder: PathBuf, launch_server: Arc<LaunchServer>) -> Self {
        Self { program, folders: HelperFolders::new(folder), launch_server }
    }

    /// Estimates a job, as long as the result is needed; the error is for people.
    pub(crate) fn estimate(&self, task: &EstimateTask, is_needed: impl Fn() -> bool) -> Result<JobEstimate, String> {
        read(&self.folders.with_new(|folder| self.run(task, folder, is_needed))?)
    }

    fn run(&self, task: &EstimateTask, folder: &AttemptFolder, is_needed: impl Fn() -> bool) -> Result<HelperOutput, String> {
        let user = run_as(&task.owner).map_err(NotLaunched::reason)?;
        let request = JobRequest {
            command: JobCommand::Program(self.command(task)),
            // A description is read by this program, and needs no environment of the user.
            activation: task.request.activation.clone().filter(|_| task.method == Method::DryRun),
            image: None,
            output: None,
            error: None,
            interactive: false,
            ..task.request.clone()
        };
        let assignment = Assignment {
            owner: &task.owner.name,
            attempt: AttemptId { job: task.job.unwrap_or(JobId(0)), number: 0 },
            request: &request,
            user: user.as_ref(),
            placement: &Placement { server: LOCAL_SERVER, devices: Vec::new() },
            devices: &[],
            mps: None,
            folder,
            log_limit: MAX_ANSWER,
            limits: HELPER_LIMITS,
            checkpoints: None,
            checkpoint_folder: PathBuf::new(),
        };
        let lookup = look_up(&request, user.as_ref(), &self.program).map_err(|error| format!("no estimate: {error}"))?;
        let plan = plan(&assignment, &lookup).map_err(|error| format!("no estimate: {error}"))?;
        run_helper_while(folder, plan, &self.launch_server, task.limit(), is_needed).map_err(|error| format!("no estimate: {error}"))
    }

    fn command(&self, task: &EstimateTask) -> Vec<String> {
        let EstimateTask { request, method, .. } = task;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut command = vec![text(&self.program)];
        let mut add = |added: &[&str]| command.extend(added.iter().map(ToString::to_string));
        let model = request.hints.model.as_deref().map(text);
        let batch = request.hints.batch.map(|batch| batch.to_string());
        match method {
            Method::Static => add(&["estimate", "--json"]),
            Method::DryRun => {
                add(&[
                    "trace-memory",
                    "--json",
                    "--time-limit",
                    &task.seconds.get().ceil().to_string(),
                    "--gpus",
                    &request.resources.gpus.to_string(),
                ]);
            }
        }
        if let Some(batch) = &batch {
            add(&["--batch", batch]);
        }
        // Its memory and kernels count. Others than the listed ones are taken for the default.
        if let Some(gpu) = task.gpu.as_deref().and_then(Gpu::named) {
            add(&["--gpu", &gpu.name]);
        }
        match (method, &model, python_script(request)) {
            (Method::DryRun, _, Some((interpreter, script))) => {
                if let Some(model) = &model {
                    add(&["--model", model]);
                }
                // Its Python is found in its own environment.
                add(&["--python", &interpreter, "--fallback-python", &text(&task.python), "--"]);
                command.extend_from_slice(script);
            }
            (_, Some(model), _) => add(&["--", model]),
            (_, None, _) => {}
        }
        command
    }
}

/// The Python interpreter and its arguments, where the job is a Python script, or a launcher of one.
pub(crate) fn python_script(request: &JobRequest) -> Option<(String, &[String])> {
    let JobCommand::Program(words) = &request.command else { return None };
    let (program, rest) = words.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let name = Path::new(program).file_name()?.to_str()?;
    if name.starts_with("python") {
        return Some((program.clone(), rest));
    }
    // The interpreter of a launcher is beside it.
    LAUNCHERS.contains(&name).then(|| (Path::new(program).with_file_name("python").to_string_lossy().into_owned(), words.as_slice()))
}

/// The answer of `carma estimate --json`, as far as needed here.
#[derive(Debug, Deserialize)]
struct Answer {
    estimator: String,
    memory_mib: f64,
    upper_mib: f64,
    #[serde(default)]
    utilisation: Option<carma_estimate::utilisation::Utilisation>,
    #[serde(default)]
    notes: Vec<String>,
    /// Memory by part.
    #[serde(default)]
    breakdown_mib: BTreeMap<String, f64>,
}

fn read(output: &HelperOutput) -> Result<JobEstimate, String> {
    // Shells that activate an environment may print something first.
    let begins = output.output.windows(2).rposition(|pair| pair == b"\n{").map_or(0, |line| line + 1);
    let answer: Answer = serde_json::from_slice(&output.output[begins..]).map_err(|error| {
        let reason = reason(&String::from_utf8_lossy(&output.errors)).unwrap_or_else(|| error.to_string());
        format!("no estimate: {}", reason.chars().take(300).collect::<String>())
    })?;
    Ok(answer.into())
}

/// Why an estimate failed: its last line, and for a dry run the message of the script before it.
fn reason(errors: &str) -> Option<String> {
    const MARK: &str = "carma: ";
    let lines: Vec<&str> = errors.lines().collect();
    let (last, before) = lines.split_last()?;
    let last = last.trim_start_matches(MARK);
    let message = before.iter().rposition(|line| line.starts_with(MARK)).filter(|_| last.starts_with(DRY_RUN_FAILED));
    let Some(begins) = message else { return Some(last.to_owned()) };
    let message: Vec<&str> = before[begins..].iter().map(|line| line.trim_start_matches(MARK).trim()).collect();
    Some(format!("{DRY_RUN_FAILED}: {}", message.join(": ")))
}

impl From<Answer> for JobEstimate {
    fn from(answer: Answer) -> Self {
        let mib = |value: f64| MiB(value.max(0.0).ceil() as u64);
        let (expected, upper) = (mib(answer.memory_mib), mib(answer.upper_mib.max(answer.memory_mib)));
        let utilisation = answer.utilisation.map(Into::into);
        let part = |name: &&str| {
            let memory = MiB(answer.breakdown_mib.get(*name)?.round() as u64);
            (memory > MiB::ZERO).then(|| MemoryPart { name: (*name).to_owned(), memory })
        };
        let memory = Some(PerRank::Same(MemoryEstimate { expected, upper }));
        Self {
            estimate: Estimate { memory, utilisation, ..Estimate::default() },
            source: Some(answer.estimator),
            notes: answer.notes,
            parts: PARTS.iter().filter_map(part).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_after_output_of_shells() {
        let output = |output: &str, errors: &str| HelperOutput { output: output.into(), errors: errors.into() };
        let answer = "{\n  \"estimator\": \"static\",\n  \"memory_mib\": 10.5,\n  \"upper_mib\": 12\n}\n";
        let expected = Some(PerRank::Same(MemoryEstimate { expected: MiB(11), upper: MiB(12) }));
        for before in ["", "Welcome {to} bash\n"] {
            assert_eq!(read(&output(&format!("{before}{answer}"), "")).unwrap().estimate.memory, expected);
        }
        let parts = r#"{"estimator": "static", "memory_mib": 10, "upper_mib": 12, "breakdown_mib": {"context": 6.4, "optimizer": 0, "weights": 3.6}}"#;
        let parts: Vec<_> = read(&output(parts, "")).unwrap().parts.into_iter().map(|part| (part.name, part.memory.0)).collect();
        assert_eq!(parts, [("weights".to_owned(), 4), ("context".to_owned(), 6)]);
        assert_eq!(read(&output("", "warning\ncarma: no such model\n")).unwrap_err(), "no estimate: no such model");
        let errors = "warning\ncarma: /a/train.py:3: import nope\n  there is no module nope\ncarma: the dry run of the script failed; --model FILE\n";
        let why = "no estimate: the dry run of the script failed: /a/train.py:3: import nope: there is no module nope";
        assert_eq!(read(&output("", errors)).unwrap_err(), why);
    }
}
