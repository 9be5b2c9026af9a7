//! The variables of Slurm, for scripts with `#SBATCH` lines.

use super::assignment::Assignment;
use super::host_facts::Lookup;

/// The variables that Slurm would set and that mean something here. `SLURM_NTASKS` is not set: with it, frameworks would expect `srun`.
pub(super) fn slurm_variables(assignment: &Assignment<'_>, lookup: &Lookup) -> Vec<(&'static str, String)> {
    let request = assignment.request;
    let (job, resources) = (assignment.attempt.job.0.to_string(), &request.resources);
    let submitted_in = request.environment.get("PWD").filter(|folder| folder.starts_with('/')).cloned();
    let submitted_in = submitted_in.unwrap_or_else(|| request.directory.to_string_lossy().into_owned());
    let gpus = assignment.placement.devices.len();
    let with_gpus = (gpus > 0).then(|| gpus.to_string());
    let element = request.array.as_ref();
    let variables = [
        ("SLURM_JOB_ID", Some(job.clone())),
        ("SLURM_JOBID", Some(job)),
        ("SLURM_JOB_NAME", Some(request.name.clone().unwrap_or_else(|| "script".to_owned()))),
        ("SLURM_JOB_USER", Some(assignment.owner.to_owned())),
        ("SLURM_JOB_NUM_NODES", Some("1".to_owned())),
        ("SLURM_JOB_NODELIST", Some(lookup.node.clone()).filter(|node| !node.is_empty())),
        ("SLURM_RESTART_COUNT", assignment.attempt.number.checked_sub(2).map(|earlier| (earlier + 1).to_string())),
        ("SLURM_SUBMIT_DIR", Some(submitted_in)),
        ("SLURM_GPUS", with_gpus.clone()),
        ("SLURM_GPUS_ON_NODE", with_gpus),
        ("SLURM_CPUS_PER_TASK", resources.cpus.map(|cores| cores.to_string())),
        ("SLURM_CPUS_ON_NODE", resources.cpus.map(|cores| cores.to_string())),
        ("SLURM_MEM_PER_NODE", resources.host_memory.map(|memory| memory.0.to_string())),
        ("SLURM_ARRAY_JOB_ID", element.and_then(|element| element.array).map(|array| array.0.to_string())),
        ("SLURM_ARRAY_TASK_ID", element.map(|element| element.index.to_string())),
    ];
    variables.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
