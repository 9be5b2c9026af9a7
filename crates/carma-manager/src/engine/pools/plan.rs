//! Whether a pool should request a pilot: pure, from what waits and what is to come.

use carma_core::{MiB, Seconds};

use crate::cluster::Pool;

/// A job that waits for GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingJob {
    pub(crate) gpus: u32,
    /// Memory on each GPU, if it is known or estimated.
    pub(crate) memory: Option<MiB>,
    /// It wants its GPUs for itself.
    pub(crate) exclusive: bool,
    /// How much time it needs on one server; unset if it can checkpoint, or has no limit.
    pub(crate) needs: Option<Seconds>,
    /// When present GPUs are predicted to take it, from now; unset: unknown.
    pub(crate) predicted: Option<Seconds>,
}

/// Why no pilot of a pool can run a job, however long it waits.
pub(crate) fn misfit(pool: &Pool, job: &WaitingJob) -> Option<String> {
    let settings = &pool.settings;
    if job.gpus > settings.gpus {
        return Some(format!("a pilot has {} GPUs; the job needs {}", settings.gpus, job.gpus));
    }
    if let (Some(memory), Some(most)) = (job.memory, pool.gpu_memory())
        && memory > most
    {
        return Some(format!("its GPUs have {most}; the job needs {memory}"));
    }
    if let Some(needs) = job.needs.filter(|needs| *needs > settings.time) {
        let text = |time: Seconds| carma_format::duration(time.get());
        return Some(format!("a pilot runs for {}; the job may need {}", text(settings.time), text(needs)));
    }
    None
}

/// Whether a pool should request one more pilot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need {
    Request,
    /// Not now, and why.
    No(String),
}

/// Whether to request a pilot for these jobs, in queue order. `pending`: its pilots that have not connected. `present`: those that have, without those
/// that end before a new one would start.
pub(crate) fn need(pool: &Pool, pending: usize, present: usize, waiting: &[WaitingJob]) -> Need {
    let settings = &pool.settings;
    if let Some(paused) = &pool.paused {
        return Need::No(paused.to_string());
    }
    let mut to_come = PendingGpus::new(pool, pending);
    let unserved = waiting.iter().find(|job| {
        let soon = job.predicted.is_some_and(|predicted| predicted <= settings.patience);
        misfit(pool, job).is_none() && !soon && !to_come.take(job)
    });
    if unserved.is_none() {
        return Need::No(if pending > 0 {
            format!("{} requested", pilots(pending, "is", "are"))
        } else {
            "no waiting job needs a pilot".to_owned()
        });
    }
    if pending >= settings.backlog as usize {
        return Need::No(format!("{} in the queue of the batch system (backlog {})", pilots(pending, "waits", "wait"), settings.backlog));
    }
    if pending + present >= settings.max as usize {
        return Need::No(format!("the pool has {} pilots (max {})", carma_format::count(pending + present, "pilot"), settings.max));
    }
    Need::Request
}

/// A number of pilots, and the verb for one or several.
fn pilots(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", carma_format::count(number, "pilot"), if number == 1 { one } else { several })
}

/// The GPUs of pending pilots, as far as waiting jobs have not taken them.
struct PendingGpus {
    /// Memory left on each GPU of each pilot; unset: unknown, for one job.
    pilots: Vec<Vec<Option<MiB>>>,
}

impl PendingGpus {
    fn new(pool: &Pool, pending: usize) -> Self {
        Self { pilots: vec![vec![pool.gpu_memory(); pool.settings.gpus as usize]; pending] }
    }

    /// Takes room for a job. False if there is none.
    fn take(&mut self, job: &WaitingJob) -> bool {
        let fits = |left: &Option<MiB>| match (left, job.memory) {
            (Some(left), Some(memory)) => *left >= memory,
            _ => true,
        };
        for pilot in &mut self.pilots {
            if pilot.iter().filter(|gpu| fits(gpu)).count() < job.gpus as usize {
                continue;
            }
            let mut missing = job.gpus;
            pilot.retain_mut(|gpu| {
                if missing == 0 || !fits(gpu) {
                    return true;
                }
                missing -= 1;
                match (gpu, job.memory) {
                    (Some(left), Some(memory)) if !job.exclusive => {
                        *left = *left - memory;
                        true
                    }
                    // A job of unknown size, or alone, takes all of it.
                    _ => false,
                }
            });
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{PoolPause, PoolSettings};

    fn pool(max: u32, backlog: u32) -> Pool {
        let settings = serde_json::json!({ "gpus": 2, "time": 3600.0, "max": max, "backlog": backlog, "idle": 60.0, "patience": 300.0 });
        let settings: PoolSettings = serde_json::from_value(settings).unwrap();
        Pool { seen_memory: Some(MiB(40_000)), ..Pool::new("gpu".parse().unwrap(), settings) }
    }

    fn job(memory: u64) -> WaitingJob {
        WaitingJob { gpus: 1, memory: Some(MiB(memory)), exclusive: false, needs: None, predicted: None }
    }

    fn requests(pool: &Pool, pending: usize, present: usize, waiting: &[WaitingJob]) -> bool {
        need(pool, pending, present, waiting) == Need::Request
    }

    #[test]
    fn a_pilot_is_requested_only_for_a_job_that_fits_and_would_wait() {
        let gpu = pool(4, 1);
        assert!(requests(&gpu, 0, 0, &[job(30_000)]));
        assert!(!requests(&gpu, 0, 0, &[]), "nothing waits");
        assert!(!requests(&gpu, 0, 0, &[job(50_000)]), "too large for its GPUs");
        assert!(!requests(&gpu, 0, 0, &[WaitingJob { gpus: 3, ..job(1) }]), "too many GPUs");
        assert!(!requests(&gpu, 0, 0, &[WaitingJob { needs: Some(Seconds::from_secs(7200)), ..job(1) }]), "too long");
        assert!(!requests(&gpu, 0, 0, &[WaitingJob { predicted: Some(Seconds::from_secs(60)), ..job(1) }]), "it starts soon anyway");
        assert!(requests(&gpu, 0, 0, &[WaitingJob { predicted: Some(Seconds::from_secs(600)), ..job(1) }]));
        let paused = Pool { paused: Some(PoolPause::By("ada".to_owned())), ..gpu };
        assert!(!requests(&paused, 0, 0, &[job(1)]));
    }

    #[test]
    fn pending_pilots_serve_jobs_first_and_limits_hold() {
        let gpu = pool(3, 2);
        let four = vec![job(30_000); 4];
        assert!(!requests(&gpu, 1, 0, &four[..2]), "both fit the pending pilot");
        assert!(requests(&gpu, 1, 0, &four[..3]));
        assert!(!requests(&gpu, 1, 0, &vec![job(20_000); 4]), "two share each GPU");
        assert!(requests(&gpu, 1, 0, &vec![WaitingJob { exclusive: true, ..job(20_000) }; 3]));
        assert!(requests(&gpu, 1, 0, &[WaitingJob { gpus: 2, ..job(30_000) }, job(30_000)]));
        assert!(!requests(&gpu, 2, 0, &vec![job(30_000); 9]), "the backlog is full");
        assert!(!requests(&gpu, 1, 2, &vec![job(30_000); 9]), "it has all its pilots");
        let unknown = WaitingJob { memory: None, ..job(0) };
        assert!(!requests(&gpu, 1, 0, &vec![unknown.clone(); 2]) && requests(&gpu, 1, 0, &vec![unknown; 3]));
    }
}
