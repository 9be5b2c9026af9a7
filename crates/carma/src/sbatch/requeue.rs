//! Requeues a job under its own number with more shards.

use std::thread;
use std::time::{Duration, Instant};

use carma_core::Config;
use carma_format::memory as size;
use carma_manager::judge::Judgement;
use carma_manager::slurm::{Commands, SlurmError, SlurmJob};

use super::raise::{Next, OomAttempt, next};
use super::wrapper::Recovery;

/// The controller may be busy for a moment. Slurm kills what is left of a requeued job after `KillWait`, usually 30 s.
const TRIES: u32 = 3;
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(12);
/// A controller that is away this long may be away for hours, and the job holds its shards meanwhile.
const CONTROLLER_TIMEOUT: Duration = Duration::from_secs(300);

/// The job that we are in.
#[derive(Debug)]
pub(super) struct RequeuedJob {
    recovery: Recovery,
    job: Option<SlurmJob>,
    shards: Option<u64>,
    restarts: u32,
    heterogeneous: bool,
}

impl RequeuedJob {
    /// What Slurm's variables say.
    pub(super) fn from_environment(recovery: Recovery, variable: impl Fn(&str) -> Option<String>) -> Self {
        let element = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID")).map(|(array, index)| format!("{array}_{index}"));
        let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
        Self {
            recovery,
            job: element.or_else(|| variable("SLURM_JOB_ID")).map(SlurmJob),
            shards: number("SLURM_SHARDS_ON_NODE"),
            restarts: number("SLURM_RESTART_COUNT").and_then(|count| count.try_into().ok()).unwrap_or(0),
            heterogeneous: variable("SLURM_HET_SIZE").is_some(),
        }
    }

    /// Requeues the job with more shards, or says why not.
    pub(super) fn after(&self, judgement: &Judgement, say: impl Fn(&str)) {
        let Recovery { gpu, retries } = self.recovery;
        let (Some(job), Some(shards)) = (&self.job, self.shards) else {
            return say(&format!("{}; this is not a Slurm job with shards, so it cannot get more", judgement.reason));
        };
        let had = format!("{shards} shards ({})", size(gpu.memory_of(shards)));
        say(&format!("attempt {} ran out of GPU memory with {had}: {}", self.restarts + 1, judgement.reason));
        if self.heterogeneous {
            return say("a heterogeneous job is not put back into the queue");
        }
        let ran_out = OomAttempt { shards, needed: judgement.needed, restarts: self.restarts };
        match next(gpu, ran_out, retries, &Config::default().recovery.ladder) {
            Next::NoRetriesLeft => say(&format!("the limit of restarts is reached (--oom-retries {retries}): it fails now")),
            Next::NothingLarger => {
                say("it had all shards of its GPU, and Slurm changes no shards to GPUs: request --gres=gpu:1 on larger GPUs");
            }
            Next::Raise(more) => {
                let wanted = format!("{more} shards ({})", size(gpu.memory_of(more)));
                say(&format!("job {} goes back into the queue with {wanted}, retry {} of {retries}", job.0, self.restarts + 1));
                requeue(job, more, say);
            }
        }
    }
}

/// Requeues a job with this many shards. It is held first, so that it cannot start with its old shards.
fn requeue(job: &SlurmJob, shards: u64, say: impl Fn(&str)) {
    // From the first step on, Slurm sends SIGTERM to everything in this job.
    let slurm = Commands::within(LIMIT).surviving_term();
    match requeue_held(job, &slurm) {
        Requeued::Yes => {}
        Requeued::No(error) => return say(&format!("it is not requeued: {error}")),
        Requeued::Unknown(error) => {
            return say(&format!(
                "Slurm gives no answer, and may requeue it later; if it is held then, scontrol release {}: {error}",
                job.0
            ));
        }
    }
    if let Err(error) = persist(|| slurm.set_gres(job, &format!("shard:{shards}"))) {
        say(&format!("it keeps the shards that it had, because Slurm does not change them: {error}"));
    }
    // Slurm may set a later time again when the job has ended: then it waits for `cred_expire`, usually two minutes.
    let _ = slurm.start_now(job);
    match persist(|| slurm.release(job)) {
        Ok(()) => say("released; Slurm starts a requeued job after up to two minutes"),
        Err(error) => say(&format!("it stays held (release it with scontrol release {}): {error}", job.0)),
    }
}

/// Whether Slurm has taken a job back.
#[derive(Debug)]
enum Requeued {
    Yes,
    No(SlurmError),
    Unknown(SlurmError),
}

/// Puts a job back into the queue, held. An error is no verdict: a controller that hangs acts later, and the job would stay held. So Slurm is asked what
/// became of it, as long as it does not answer.
fn requeue_held(job: &SlurmJob, slurm: &Commands) -> Requeued {
    let since = Instant::now();
    let mut refusals = 0;
    loop {
        let Err(error) = slurm.requeue_held(job) else { return Requeued::Yes };
        match slurm.state(job) {
            Ok(Some(state)) if !state.is_running() => return Requeued::Yes,
            Ok(_) => refusals += 1,
            Err(_) if since.elapsed() > CONTROLLER_TIMEOUT => return Requeued::Unknown(error),
            Err(_) => {}
        }
        if refusals == TRIES || matches!(error, SlurmError::NotInstalled(_)) {
            return Requeued::No(error);
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

fn persist(step: impl Fn() -> Result<(), SlurmError>) -> Result<(), SlurmError> {
    let mut result = step();
    for _ in 1..TRIES {
        if result.is_ok() {
            break;
        }
        thread::sleep(RETRY_INTERVAL);
        result = step();
    }
    result
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use carma_core::{MiB, Verdict};

    use super::super::site::ShardedGpu;
    use super::*;

    /// The messages about a job with these variables after an out-of-memory error.
    fn said(variables: &[(&str, &str)], retries: u32) -> Vec<String> {
        let recovery = Recovery { gpu: ShardedGpu { shards: 40, memory: MiB(40_960) }, retries };
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let judgement = Judgement { verdict: Verdict::OutOfMemory, reason: "no room".to_owned(), blame: None, needed: None };
        let lines = RefCell::new(Vec::new());
        RequeuedJob::from_environment(recovery, variable).after(&judgement, |line| lines.borrow_mut().push(line.to_owned()));
        lines.into_inner()
    }

    #[test]
    fn the_reason_for_no_raise_is_printed() {
        let last = |variables: &[(&str, &str)], retries| said(variables, retries).pop().unwrap();
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_SHARDS_ON_NODE", "10"), ("SLURM_RESTART_COUNT", "3")];
        assert!(last(&[], 3).contains("not a Slurm job"));
        assert_eq!(last(&job, 3), "the limit of restarts is reached (--oom-retries 3): it fails now");
        assert_eq!(said(&job, 3)[0], "attempt 4 ran out of GPU memory with 10 shards (10.0 GiB): no room");
        assert!(last(&[("SLURM_JOB_ID", "7"), ("SLURM_SHARDS_ON_NODE", "40")], 3).starts_with("it had all shards"));
        assert!(last(&[job[0], job[1], ("SLURM_HET_SIZE", "2")], 3).contains("heterogeneous"));
    }

    #[test]
    fn an_element_of_an_array_is_requeued_alone() {
        let variables = [("SLURM_JOB_ID", "9"), ("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "2")];
        let recovery = Recovery { gpu: ShardedGpu { shards: 40, memory: MiB(40_960) }, retries: 1 };
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(RequeuedJob::from_environment(recovery, variable).job, Some(SlurmJob("7_2".to_owned())));
    }
}
