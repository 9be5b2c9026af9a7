//! Metrics of unfinished jobs: their number, their waiting times, and the GPU usage of running ones.

use carma_core::{AttemptId, Seconds};

use super::MAX_SERIES;
use super::exposition::{Labels, Metric, Page, counter, gauge};
use super::facts::{Facts, JobFacts};
use super::value::{Value, bytes, share};
use crate::api::GpuTenant;
use crate::store::Phase;

const PHASES: [Phase; 7] =
    [Phase::Held, Phase::Estimating, Phase::Queued, Phase::Starting, Phase::Running, Phase::Recovering, Phase::Preempted];

/// Metrics of a job on a GPU.
const SHARES: [(Metric, Value<GpuTenant>); 4] = [
    (gauge("carma_job_gpu_memory_bytes", "Memory that the job uses on the GPU."), |tenant| tenant.memory.map(bytes)),
    (gauge("carma_job_gpu_memory_reserved_bytes", "Memory reserved for the job on the GPU."), |tenant| Some(bytes(tenant.reserved))),
    (gauge("carma_job_gpu_sm_active_ratio", "SMACT that the job causes on the GPU."), |tenant| tenant.smact),
    (counter("carma_job_gpu_energy_joules_total", "Energy of this attempt on the GPU."), |tenant| tenant.energy.map(|energy| energy.0)),
];

pub(super) fn write(page: &mut Page, facts: &Facts, names: bool) {
    let phases = PHASES.map(|phase| (Labels::new([("state", &phase)]), facts.phases.get(&phase).copied().unwrap_or_default() as f64));
    page.family(gauge("carma_jobs", "Unfinished jobs."), phases.iter().map(|(labels, jobs)| (labels, Some(*jobs))));
    let stalled = |hangs: bool| facts.running.iter().filter(|job| job.stall.is_some_and(|stall| stall.hangs() == hangs)).count() as f64;
    let stalls = [("hanging", true), ("slow", false)].map(|(name, hangs)| (Labels::new([("stall", &name)]), stalled(hangs)));
    page.family(
        gauge("carma_jobs_stalled", "Running jobs that hang or have become slow."),
        stalls.iter().map(|(labels, jobs)| (labels, Some(*jobs))),
    );
    page.single(gauge("carma_queue_depth", "Jobs that wait only for room on GPUs."), facts.ready as f64);
    let oldest = facts.oldest.map_or(0.0, Seconds::get);
    page.single(gauge("carma_queue_oldest_wait_seconds", "Longest wait of such a job."), oldest);

    let label = |attempt: &AttemptId, name: Option<&str>, user: &str| {
        let (name, user) = if names { (name.unwrap_or_default(), user) } else { ("", "") };
        Labels::new([("job_id", &attempt.job.0), ("attempt", &attempt.number), ("name", &name), ("user", &user)])
    };
    let running: Vec<_> = facts.running.iter().take(MAX_SERIES).collect();
    let labels: Vec<Labels> = running.iter().map(|job| label(&job.attempt, job.name.as_deref(), &job.user)).collect();
    let of = |value: Value<JobFacts>| labels.iter().zip(&running).map(move |(labels, job)| (labels, value(job)));
    page.family(gauge("carma_job_gpus", "GPUs of a running job."), of(|job| Some(f64::from(job.gpus))));
    page.family(gauge("carma_job_run_seconds", "Run time of the present attempt."), of(|job| Some(job.ran.get())));
    page.family(gauge("carma_job_progress_ratio", "Progress of the job, if it reports it."), of(|job| share(job.progress)));

    let tenants = facts.gpus.iter().flat_map(|gpu| gpu.detail.tenants.iter().map(move |tenant| (gpu, tenant)));
    let tenants: Vec<(Labels, &GpuTenant)> = tenants
        .take(MAX_SERIES)
        .map(|(gpu, tenant)| {
            let labels = label(&tenant.attempt, tenant.name.as_deref(), &tenant.user);
            (labels.with("gpu", gpu.detail.device).with("uuid", &gpu.detail.uuid), tenant)
        })
        .collect();
    for (metric, value) in SHARES {
        page.family(metric, tenants.iter().map(|(labels, tenant)| (labels, value(tenant))));
    }
}
