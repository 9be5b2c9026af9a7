//! Bad placements: the GPU takes no more jobs, and a job that can checkpoint is moved.

use carma_core::*;

use crate::lab::{Lab, gpu, known, launches, secs, share};

fn lab(correction: CorrectionSettings) -> Lab {
    let queue = Some(QueueSettings { backfill: Some(0.0), ..QueueSettings::default() });
    let settings = Settings { policy: Some("magm".to_owned()), correction: Some(correction), queue, ..Settings::default() };
    Lab::new(settings.check().unwrap(), 1)
}

fn patient(id: u64) -> JobSpec {
    JobSpec { may_checkpoint: true, ..known(id, 4_000) }
}

fn moved(actions: &[Action]) -> Vec<u64> {
    let moved = |action: &Action| match action {
        Action::Signal { attempt, signal: Signal::Checkpoint, reason: StopReason::Moved } => Some(attempt.job.0),
        _ => None,
    };
    actions.iter().filter_map(moved).collect()
}

impl Lab {
    /// A job reports its progress this many seconds later.
    pub(crate) fn reports(&mut self, id: u64, after: u64, done: f64) -> Vec<Action> {
        self.now = self.now + secs(after);
        self.event(Event::Progress { attempt: self.attempt(id), done: share(done) })
    }

    /// The memory of each job on the GPU, this many seconds later.
    fn uses(&mut self, after: u64, memory: &[(u64, u64)]) -> Vec<Action> {
        self.now = self.now + secs(after);
        let process = |(id, memory): &(u64, u64)| ProcessUse { owner: Owner::Attempt(self.attempt(*id)), memory: Some(MiB(*memory)) };
        let processes = memory.iter().map(process).collect();
        self.event(Event::ProcessesSeen { device: gpu(0), processes })
    }

    /// A GPU that two jobs share. The first did a thousandth of its work per second while it was alone.
    fn two(correction: CorrectionSettings, first: JobSpec, second: JobSpec) -> Self {
        let mut lab = lab(correction);
        lab.submit(first);
        lab.settle(1, 4_000);
        lab.reports(1, 0, 0.0);
        lab.reports(1, 100, 0.1);
        assert_eq!(lab.submit(second), [(2, vec![0])]);
        lab.settle(2, 4_000);
        lab.now = lab.now + secs(120);
        lab
    }
}

const NONE: [u64; 0] = [];
const SLOWED: CorrectionSettings = CorrectionSettings { slowdown: Some(1.5), memory_horizon: None };
const GROWS: CorrectionSettings = CorrectionSettings { slowdown: None, memory_horizon: Some(400.0) };

#[test]
fn a_job_slower_than_predicted_is_separated_from_the_job_that_slows_it() {
    let mut lab = Lab::two(SLOWED, known(1, 4_000), patient(2));
    assert_eq!(moved(&lab.reports(1, 0, 0.2)), NONE, "one report shows no speed");
    assert_eq!(moved(&lab.reports(1, 100, 0.25)), [2], "2,000 % of what it took alone");
    assert_eq!(lab.submit(known(3, 4_000)), []);
    let slowed = |obstacle: &&Obstacle| matches!(obstacle, Obstacle::Slowed { job: JobId(1), percent: 200, predicted: 120 });
    assert!(lab.obstacles(3, 0).iter().any(|obstacle| slowed(&obstacle)), "{:?}", lab.obstacles(3, 0));
    let gone = lab.exit(2, Verdict::Failed { code: 143 });
    assert!(gone.iter().any(|action| matches!(action, Action::Requeue { reason: RequeueReason::Moved, .. })), "{gone:?}");
    assert!(lab.obstacles(2, 0).contains(&Obstacle::InterferedBefore { with: JobId(1) }));
    assert_eq!(lab.scheduler.job(JobId(2)).unwrap().apart_from, [JobId(1)]);
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(2, vec![0])]);
}

#[test]
fn a_new_job_is_not_judged_before_it_trains() {
    let mut lab = lab(SLOWED);
    lab.submit(known(1, 4_000));
    lab.settle(1, 4_000);
    lab.reports(1, 0, 0.0);
    lab.reports(1, 100, 0.1);
    lab.submit(patient(2));
    lab.settle(2, 4_000);
    lab.reports(1, 0, 0.2);
    assert_eq!(moved(&lab.reports(1, 100, 0.21)), NONE);
}

#[test]
fn a_predicted_slowdown_moves_no_job() {
    let mut lab = Lab::two(SLOWED, patient(1), patient(2));
    lab.reports(1, 0, 0.2);
    assert_eq!(moved(&lab.reports(1, 100, 0.26)), NONE, "1.7 times is less than 1.5 times the predicted 1.2");
    assert_eq!(lab.submit(known(3, 4_000)), [(3, vec![0])]);
}

#[test]
fn a_job_that_cannot_checkpoint_is_not_moved_but_no_job_is_added() {
    let mut lab = Lab::two(SLOWED, known(1, 4_000), known(2, 4_000));
    lab.reports(1, 0, 0.2);
    assert_eq!(moved(&lab.reports(1, 100, 0.21)), NONE);
    assert_eq!(lab.submit(known(3, 4_000)), []);
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [(3, vec![0])], "other jobs may interfere less");
}

#[test]
fn without_a_solo_measurement_the_expected_duration_is_used_with_a_margin() {
    let mut lab = lab(SLOWED);
    lab.submit(JobSpec { expected_duration: Some(secs(1000)), ..patient(1) });
    lab.settle(1, 4_000);
    lab.submit(known(2, 4_000));
    lab.settle(2, 4_000);
    lab.now = lab.now + secs(120);
    lab.reports(1, 0, 0.1);
    assert_eq!(moved(&lab.reports(1, 100, 0.14)), NONE, "2.5 times, but a guess may be off");
    assert_eq!(moved(&lab.reports(1, 100, 0.15)), [1]);
}

#[test]
fn growing_memory_first_closes_the_gpu_and_then_moves_a_job_that_frees_enough() {
    let mut lab = Lab::two(GROWS, known(1, 4_000), patient(2));
    // 40,448 MiB can be had. 40 MiB a second: 400 s are left when 24,448 are used, 200 s when 32,448 are.
    let mut grown = 8_000;
    let mut asked_at = None;
    for _ in 0..40 {
        grown += 800;
        if moved(&lab.uses(20, &[(1, grown), (2, 4_000)])) == [2] {
            asked_at = Some(grown);
            break;
        }
        let closed = lab.scheduler.fleet().device(gpu(0)).unwrap().corrected.is_some();
        assert_eq!(closed, grown + 4_000 >= 24_448, "at {grown}");
    }
    assert_eq!(asked_at, Some(28_800), "the first reading with 200 s left");
    assert_eq!(moved(&lab.uses(20, &[(1, 29_600), (2, 4_000)])), NONE, "it is leaving");
}

#[test]
fn a_growing_job_is_moved_where_no_other_can_be() {
    let mut lab = Lab::two(GROWS, known(1, 4_000), patient(2));
    let preempted = (0..40).map(|step| moved(&lab.uses(20, &[(2, 8_000 + 800 * step), (1, 4_000)]))).find(|moved| !moved.is_empty());
    assert_eq!(preempted, Some(vec![2]));
}

#[test]
fn steady_memory_causes_no_correction() {
    let mut lab = Lab::two(GROWS, patient(1), patient(2));
    for step in 0..40 {
        let taken = [2_000, 9_000, 15_000, 20_000].get(step).copied().unwrap_or(20_000 + step as u64 % 2);
        assert_eq!(moved(&lab.uses(20, &[(1, taken), (2, 18_000)])), NONE);
        assert_eq!(lab.scheduler.fleet().device(gpu(0)).unwrap().corrected, None);
    }
}
