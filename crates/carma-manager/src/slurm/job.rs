//! A job of Slurm, as its owner can change it.

use super::commands::Commands;
use super::error::SlurmError;

/// A job of Slurm: `123`, or `123_4` for an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob(pub String);

/// The state of a job in Slurm's words: `RUNNING`, `COMPLETING`, `PENDING`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmState(pub String);

impl SlurmState {
    /// It runs, and is not ending.
    pub fn is_running(&self) -> bool {
        self.0 == "RUNNING"
    }
}

impl Commands {
    /// The state of a job; none if Slurm does not know it any more.
    pub fn state(&self, SlurmJob(job): &SlurmJob) -> Result<Option<SlurmState>, SlurmError> {
        let text = self.run("squeue", &["--noheader", "--states=all", "--jobs", job, "--format=%T"])?;
        Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(|line| SlurmState(line.to_owned())))
    }

    /// Puts a job back into the queue, held. A running one is ended.
    pub fn requeue_held(&self, SlurmJob(job): &SlurmJob) -> Result<(), SlurmError> {
        self.run("scontrol", &["requeuehold", job]).map(drop)
    }

    /// Changes the generic resources of a job that does not run. Slurm refuses a change between GPUs and shards.
    pub fn set_gres(&self, SlurmJob(job): &SlurmJob, gres: &str) -> Result<(), SlurmError> {
        self.run("scontrol", &["update", &format!("jobid={job}"), &format!("gres={gres}")]).map(drop)
    }

    /// Lets a held job start.
    pub fn release(&self, SlurmJob(job): &SlurmJob) -> Result<(), SlurmError> {
        self.run("scontrol", &["release", job]).map(drop)
    }

    /// Lets a requeued job start at once. While it still ends, Slurm sets a later time.
    pub fn start_now(&self, SlurmJob(job): &SlurmJob) -> Result<(), SlurmError> {
        self.run("scontrol", &["update", &format!("jobid={job}"), "starttime=now"]).map(drop)
    }
}
