//! Slurm's own list of a job's GPUs.

use std::collections::BTreeSet;

use super::Exclusion;

/// The GPUs that Slurm gave to this job or step, by its numbers. It numbers the GPUs of a node in the order of the driver, from 0, even if a
/// device cgroup hides some of them from the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlurmGpus {
    pub(super) numbers: BTreeSet<usize>,
    /// Why a GPU is not used that is not among them.
    pub(super) otherwise: Exclusion,
}

impl SlurmGpus {
    /// Reads the variables; unset outside of Slurm jobs and if Slurm names no GPUs. `visible`: `CUDA_VISIBLE_DEVICES` is set.
    pub(super) fn read(variable: &impl Fn(&str) -> Option<String>, visible: bool) -> Option<Self> {
        if !is_job(variable) {
            return None;
        }
        let listed = |name: &str| variable(name).map(|list| numbers(&list));
        match (listed("SLURM_STEP_GPUS"), listed("SLURM_JOB_GPUS")) {
            // One of them is inherited: a step on a second node has the list of the first node's GPUs, a job that was submitted inside a step has
            // that step's. Slurm sets CUDA_VISIBLE_DEVICES for each job and step, so that decides.
            (Some(step), Some(job)) if visible && !step.is_subset(&job) => None,
            (Some(numbers), _) => Some(Self { numbers, otherwise: Exclusion::NotInSlurmStep }),
            (None, Some(numbers)) => Some(Self { numbers, otherwise: Exclusion::NotInSlurmJob }),
            (None, None) => None,
        }
    }
}

/// Whether this is the environment of a Slurm job.
pub(super) fn is_job(variable: &impl Fn(&str) -> Option<String>) -> bool {
    variable("SLURM_JOB_ID").is_some_and(|id| !id.trim().is_empty())
}

/// Entries that are no numbers name no GPU.
fn numbers(list: &str) -> BTreeSet<usize> {
    list.split(',').filter_map(|entry| entry.trim().parse().ok()).collect()
}
