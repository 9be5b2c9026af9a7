//! Time slices: a job whose time slice is over makes room for waiting jobs.

use carma_core::*;

use crate::lab::{Lab, gpu, job, known, launches, secs, window};

const HOUR: u64 = 3600;
const NONE: [u64; 0] = [];

fn lab(policy: &str, gpus: u16, queue: QueueSettings) -> Lab {
    let time_slices = Some(TimeSliceSettings { length: Some(HOUR as f64) });
    let settings = Settings { policy: Some(policy.to_owned()), time_slices, queue: Some(queue), ..Settings::default() };
    Lab::new(settings.check().unwrap(), gpus)
}

fn fifo() -> QueueSettings {
    QueueSettings { backfill: Some(0.0), ..QueueSettings::default() }
}

fn patient(id: u64) -> JobSpec {
    JobSpec { may_checkpoint: true, ..known(id, 4_000) }
}

/// Jobs that are preempted because their time slice is over.
fn preempted(actions: &[Action]) -> Vec<u64> {
    let preempted = |action: &Action| match action {
        Action::Signal { attempt, signal: Signal::Checkpoint, reason: StopReason::TimeSliceOver } => Some(attempt.job.0),
        _ => None,
    };
    actions.iter().filter_map(preempted).collect()
}

impl Lab {
    /// Time passes, with all that falls due meanwhile.
    fn pass(&mut self, seconds: u64) -> Vec<Action> {
        self.now = self.now + secs(seconds);
        self.event(Event::Tick)
    }

    fn submitted(&mut self, spec: JobSpec) -> Vec<Action> {
        self.event(Event::JobSubmitted(Box::new(spec)))
    }

    /// It has written its checkpoint, and ends.
    fn leaves(&mut self, id: u64) -> Vec<Action> {
        self.exit(id, Verdict::Failed { code: 143 })
    }
}

#[test]
fn a_time_slice_that_ended_on_a_stale_gpu_preempts_with_the_next_sample() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(patient(1));
    lab.submit(known(2, 4_000));
    let reading = |lab: &Lab| Event::GpuSampled { device: gpu(0), sample: Sample::new(lab.now, MiB(0)) };
    lab.event(reading(&lab));
    assert_eq!(preempted(&lab.pass(HOUR)), NONE, "no job starts on a GPU whose samples are old");
    assert_eq!(preempted(&lab.event(reading(&lab))), [1]);
}

#[test]
fn a_time_slice_that_ended_beside_foreign_memory_preempts_when_it_is_freed() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(patient(1));
    lab.submit(known(2, 4_000));
    lab.load(0, 20_000, 0.5);
    assert_eq!(preempted(&lab.pass(HOUR)), NONE, "the GPU would not be idle without job 1");
    assert_eq!(preempted(&lab.event(Event::GpuWindow { device: gpu(0), window: window(0, 0.5, 0.2, 0.2) })), [1]);
}

#[test]
fn a_time_slice_that_is_over_goes_to_a_waiting_job_and_the_preempted_job_queues_behind() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(patient(1));
    lab.submit(known(2, 4_000));
    lab.submit(known(3, 4_000));
    assert_eq!(preempted(&lab.pass(HOUR - 1)), NONE);
    assert_eq!(preempted(&lab.pass(1)), [1]);
    assert_eq!(preempted(&lab.pass(1)), NONE, "once");
    let killed = lab.pass(30);
    assert!(matches!(killed[..], [Action::Signal { signal: Signal::Kill, reason: StopReason::TimeSliceOver, .. }]), "{killed:?}");
    let gone = lab.leaves(1);
    assert!(matches!(gone[0], Action::Requeue { reason: RequeueReason::TimeSliceOver, .. }), "{gone:?}");
    assert_eq!(launches(&gone), [(2, vec![0])]);
    assert_eq!(lab.state(1).waiting(), Some(Waiting::Preempted));
    let order: Vec<u64> = lab.scheduler.queue().map(|job| job.id().0).collect();
    assert_eq!(order, [3, 1]);
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)), [(3, vec![0])]);
    assert_eq!(launches(&lab.exit(3, Verdict::Succeeded)), [(1, vec![0])]);
    assert_eq!(lab.attempt(1).number, 2);
}

#[test]
fn a_job_goes_on_until_another_waits() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(patient(1));
    assert_eq!(preempted(&lab.pass(3 * HOUR)), NONE);
    assert_eq!(preempted(&lab.submitted(JobSpec { gpus: 0, ..job(2) })), NONE, "one without GPUs");
    assert_eq!(preempted(&lab.submitted(known(3, 4_000))), [1]);
}

#[test]
fn jobs_that_cannot_checkpoint_are_left_alone() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(known(1, 4_000));
    lab.submit(known(2, 4_000));
    assert_eq!(preempted(&lab.pass(10 * HOUR)), NONE);
}

#[test]
fn no_job_is_preempted_where_that_would_not_help() {
    let mut lab = lab("exclusive", 2, fifo());
    lab.submit(patient(1));
    lab.submit(known(2, 4_000));
    lab.submit(JobSpec { gpus: 2, ..known(3, 4_000) });
    assert_eq!(preempted(&lab.pass(2 * HOUR)), NONE, "the other of the two GPUs is not to be had");
    assert_eq!(preempted(&lab.exit(2, Verdict::Succeeded)), [1]);
}

#[test]
fn no_job_is_preempted_for_one_that_lacks_power() {
    let drawing = |smact: f64, spec| JobSpec { utilisation: Utilisation::of([(Metric::Smact, smact)]), ..spec };
    let asked_under = |budget: f64| {
        let mut lab = lab("exclusive", 2, fifo());
        let power = Some(PowerSettings { budget: Some(budget), ..PowerSettings::default() });
        let settings = Settings { power, ..Settings::from(lab.scheduler.config()) };
        lab.event(Event::ConfigurationChanged(Box::new(settings)));
        assert_eq!(lab.submit(drawing(0.1, patient(1))).len() + lab.submit(drawing(0.9, known(2, 4_000))).len(), 2);
        assert_eq!(lab.submit(drawing(0.9, known(3, 4_000))), []);
        preempted(&lab.pass(HOUR))
    };
    assert_eq!(asked_under(400.0), NONE, "beside job 2 there is no power for job 3 in any case");
    assert_eq!(asked_under(700.0), [1]);
}

#[test]
fn preemption_for_a_wide_job_frees_exactly_its_gpus() {
    let mut lab = lab("exclusive", 4, fifo());
    for id in 1..=4 {
        lab.submit(patient(id));
        lab.pass(10);
    }
    lab.submit(JobSpec { gpus: 3, ..known(5, 4_000) });
    assert_eq!([lab.pass(HOUR - 40), lab.pass(10), lab.pass(10)].map(|actions| preempted(&actions)), [vec![], vec![], vec![1, 2, 3]]);
    assert_eq!(preempted(&lab.pass(60)), NONE, "three are leaving for it");
}

#[test]
fn a_wide_job_gives_all_its_gpus_back() {
    let mut lab = lab("exclusive", 2, fifo());
    lab.submit(JobSpec { gpus: 2, ..patient(1) });
    lab.submit(known(2, 4_000));
    assert_eq!(preempted(&lab.pass(HOUR)), [1]);
    assert_eq!(launches(&lab.leaves(1)), [(2, vec![0])]);
    assert!(lab.scheduler.fleet().devices().all(|device| device.tenants.iter().all(|tenant| tenant.attempt.job == JobId(2))));
}

#[test]
fn a_job_that_would_be_next_again_is_not_preempted() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(JobSpec { priority: Priority(5), ..patient(1) });
    lab.submit(known(2, 4_000));
    assert_eq!(preempted(&lab.pass(2 * HOUR)), NONE);
    assert_eq!(preempted(&lab.submitted(JobSpec { priority: Priority(5), ..known(3, 4_000) })), [1]);
}

#[test]
fn two_waiting_jobs_need_two_preemptions_and_jobs_behind_a_stuck_head_count_with_backfill() {
    let mut lab = lab("exclusive", 3, QueueSettings::default());
    for id in [1, 2] {
        lab.submit(patient(id));
    }
    lab.submit(known(3, 4_000));
    lab.submit(JobSpec { gpus: 3, ..known(4, 4_000) });
    // All GPUs are kept for the head, which needs more than one; a job that ends in time may pass.
    assert_eq!(preempted(&lab.pass(HOUR)), NONE);
    lab.event(Event::JobCancelled { job: JobId(4) });
    lab.submit(known(5, 4_000));
    assert_eq!(lab.scheduler.job(JobId(1)).unwrap().state.active().unwrap().stopping, Some(StopReason::TimeSliceOver));
    assert_eq!(preempted(&lab.submitted(known(6, 4_000))), [2]);
}

#[test]
fn preemption_on_a_shared_gpu_frees_memory() {
    let mut lab = lab("magm", 1, fifo());
    lab.submit(JobSpec { may_checkpoint: true, ..known(1, 18_000) });
    lab.settle(1, 18_000);
    assert_eq!(lab.submit(known(2, 15_000)), [(2, vec![0])]);
    lab.settle(2, 16_000);
    lab.submit(known(3, 10_000));
    assert_eq!(preempted(&lab.pass(HOUR)), [1]);
    lab.leaves(1);
    assert_eq!(lab.load(0, 15_000, 0.2), [], "it was let in as soon as the other was gone");
    assert!(lab.state(3).active().is_some());
}

#[test]
fn time_slices_of_a_new_configuration_count_from_the_launch() {
    let mut lab = lab("exclusive", 1, fifo());
    lab.submit(patient(1));
    lab.submit(known(2, 4_000));
    let rules = |length: f64| {
        let time_slices = Some(TimeSliceSettings { length: Some(length) });
        Event::ConfigurationChanged(Box::new(Settings { policy: Some("exclusive".to_owned()), time_slices, ..Settings::default() }))
    };
    lab.event(rules(7200.0));
    assert_eq!(preempted(&lab.pass(HOUR)), NONE);
    lab.event(rules(0.0));
    assert_eq!(preempted(&lab.pass(HOUR)), NONE);
    assert_eq!(preempted(&lab.event(rules(7000.0))), [1]);
}
