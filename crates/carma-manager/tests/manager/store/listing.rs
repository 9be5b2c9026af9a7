//! Lists: the queue, the history page by page, energy.

use carma_core::*;
use carma_manager::api::OutcomeFilter;
use carma_manager::request::ArrayPlace;
use carma_manager::store::*;

use super::lab::*;

/// Six jobs of two users, every second of them over.
fn six_jobs(lab: &Lab) -> (Store, Vec<JobId>) {
    let store = lab.open();
    let first = store.next_jobs(6).0;
    let jobs: Vec<JobId> = (first..first + 6).map(JobId).collect();
    for (place, id) in jobs.iter().enumerate() {
        let owner = if place < 4 { alice() } else { bob() };
        let mut job = stored(*id, owner, Some(["Train-a", "eval", "train-b", "eval", "TRAIN", "100%"][place]));
        job.submitted = UnixMillis(NOW.0 + place as u64);
        job.job.spec.array = (place < 2).then_some(ArrayMember { array: ArrayId(first), index: place as u32, at_most: None });
        store.write([Change::JobAccepted(Box::new(job))]).wait().unwrap();
        if place % 2 == 1 {
            store.write([finished(*id, Outcome::Failed { code: 3 }, UnixMillis(NOW.0 + 1_000))]).wait().unwrap();
        }
    }
    (store, jobs)
}

#[test]
fn the_queue_lists_unfinished_jobs_in_order() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    let mut put_back = core_job(jobs[0], |spec| spec.priority = Priority(5));
    put_back.sequence = 1_000;
    store.write([Change::JobChanged { job: Box::new(put_back), at: UnixMillis(NOW.0 + 77) }]).wait().unwrap();
    let queue = store.reader().unwrap().queue().unwrap();
    assert_eq!(queue.iter().map(|job| job.id).collect::<Vec<_>>(), [jobs[2], jobs[4], jobs[0]]);
    assert_eq!(
        (queue[2].priority, queue[2].phase, queue[2].since),
        (Priority(5), Phase::Queued, NOW),
        "it stands where it stood since then"
    );
    assert_eq!(queue[2].array, Some(ArrayPlace { array: ArrayId(jobs[0].0), index: 0 }));
}

#[test]
fn history_is_filtered_and_comes_in_pages_without_gaps() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    let reader = store.reader().unwrap();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = reader.history(&JobFilter::default(), before, 4).unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        seen.extend(page.iter().map(|job| job.id));
        // One that comes in meanwhile moves no page.
        submit(&store);
    }
    assert_eq!(seen, jobs.iter().rev().copied().collect::<Vec<_>>());

    let found = |filter: JobFilter| -> Vec<usize> {
        let found = reader.history(&filter, Some(JobId(jobs[5].0 + 1)), 100).unwrap();
        found.iter().rev().map(|job| jobs.iter().position(|id| *id == job.id).unwrap()).collect()
    };
    let any = JobFilter::default;
    assert_eq!(found(JobFilter { user: Some(UserId(1001)), ..any() }), [4, 5]);
    assert_eq!(found(JobFilter { phase: Some(Phase::Done), ..any() }), [1, 3, 5]);
    assert_eq!(found(JobFilter { name: Some("train".to_owned()), ..any() }), [0, 2, 4]);
    assert_eq!(found(JobFilter { name: Some("%".to_owned()), ..any() }), [5], "no letter has a second meaning");
    let text = |text: &str| found(JobFilter { text: Some(text.to_owned()), ..any() });
    assert_eq!((text("Train"), text("BO"), text(&jobs[1].0.to_string())), (vec![0, 2, 4], vec![4, 5], vec![1]));
    assert_eq!((text("TRAIN-B"), text("%"), text("_")), (vec![2], vec![5], vec![]));
    assert_eq!((text("\\"), text(&"long".repeat(20_000))), (vec![], vec![]));
    assert_eq!(found(JobFilter { array: Some(ArrayId(jobs[0].0)), ..any() }), [0, 1]);
    let outcome = |outcome| found(JobFilter { outcome: Some(outcome), ..any() });
    assert_eq!(outcome(OutcomeFilter::Failed), [1, 3, 5]);
    assert_eq!((outcome(OutcomeFilter::Succeeded), outcome(OutcomeFilter::Oom)), (vec![], vec![]));
    let span = Span { since: Some(UnixMillis(NOW.0 + 1)), until: Some(UnixMillis(NOW.0 + 3)) };
    assert_eq!(found(JobFilter { submitted: span, phase: Some(Phase::Queued), ..any() }), [2]);
    let done = &reader.history(&JobFilter { phase: Some(Phase::Done), ..any() }, None, 1).unwrap()[0];
    assert_eq!((done.outcome.clone(), done.ended), (Some(Outcome::Failed { code: 3 }), Some(UnixMillis(NOW.0 + 1_000))));
}

#[test]
fn arrays_and_users_have_their_jobs_counted_by_state() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    store.write([finished(jobs[3], Outcome::OutOfMemory, UnixMillis(NOW.0 + 2_000))]).wait().unwrap();
    let reader = store.reader().unwrap();
    let arrays = reader.arrays(&[ArrayId(jobs[0].0), ArrayId(999)]).unwrap();
    assert_eq!(arrays.iter().map(|array| (array.array, array.user)).collect::<Vec<_>>(), [(ArrayId(jobs[0].0), UserId(1000))]);
    assert_eq!(arrays[0].jobs, JobCounts { waiting: 1, failed: 1, ..JobCounts::default() });

    let users = |user, since| {
        let span = Span { since: Some(UnixMillis(NOW.0 + since)), until: None };
        let users = reader.users(user, span, UnixMillis(NOW.0 + 3_000)).unwrap();
        users.into_iter().map(|summary| (summary.user.0, summary.jobs)).collect::<Vec<_>>()
    };
    let alice = JobCounts { waiting: 2, failed: 1, out_of_memory: 1, ..JobCounts::default() };
    let bob = JobCounts { waiting: 1, failed: 1, ..JobCounts::default() };
    assert_eq!(users(None, 0), [(1000, alice), (1001, bob)]);
    assert_eq!(users(Some(UserId(1001)), 0), [(1001, bob)]);
    assert_eq!(users(Some(UserId(1001)), 1_500), [(1001, JobCounts { failed: 0, ..bob })], "what ended before the period does not count");
}

#[test]
fn a_job_of_the_history_says_what_its_attempts_used() {
    let lab = Lab::new();
    let store = lab.open();
    let job = submit(&store);
    let reader = store.reader().unwrap();
    let used = || {
        let found = reader.history(&JobFilter::default(), None, 1).unwrap().remove(0);
        (found.ran, found.peak, found.energy)
    };
    store.write([started(job, 1)]).wait().unwrap();
    assert_eq!(used(), (None, None, None));
    store.write([attempt_ended(job, 1, UnixMillis(NOW.0 + 90_000), 12.5), started(job, 2)]).wait().unwrap();
    assert_eq!(used(), (Some(Seconds::from_secs(90)), Some(MiB(3_900)), Some(Joules(12.5))));
    store.write([attempt_ended(job, 2, UnixMillis(NOW.0 + 10_000), 2.5)]).wait().unwrap();
    assert_eq!(used(), (Some(Seconds::from_secs(100)), Some(MiB(3_900)), Some(Joules(15.0))));
    let summary = reader.users(None, Span::default(), UnixMillis(NOW.0 + 5_000)).unwrap().remove(0);
    assert_eq!((summary.gpu_time, summary.energy), (Seconds::from_secs(10), Joules(15.0)), "only until now");
}

#[test]
fn recently_finished_jobs_are_sorted_by_their_end() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    store.write([finished(jobs[0], Outcome::Succeeded, UnixMillis(NOW.0 + 2_000))]).wait().unwrap();
    let reader = store.reader().unwrap();
    let over = |filter, before, most| reader.recently_finished(&filter, before, most).unwrap().iter().map(|job| job.id).collect::<Vec<_>>();
    let any = JobFilter::default;
    assert_eq!(over(any(), None, 9), [jobs[0], jobs[5], jobs[3], jobs[1]]);
    assert_eq!((over(any(), None, 1), over(any(), Some(jobs[3]), 9)), (vec![jobs[0]], vec![jobs[1]]));
    assert_eq!(over(JobFilter { user: Some(UserId(1001)), ..any() }, None, 9), [jobs[5]]);
}

#[test]
fn last_and_names_mean_a_users_latest() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    let reader = store.reader().unwrap();
    let latest = |user, name| reader.latest(UserId(user), name).unwrap();
    assert_eq!(latest(1000, None), Some(jobs[3]));
    assert_eq!(latest(1000, Some("Train-a")), Some(jobs[0]));
    assert_eq!(latest(1000, Some("100%")), None, "a name of another user's");
}

#[test]
fn energy_is_summed_by_job_user_and_local_day() {
    let lab = Lab::new();
    let (store, jobs) = six_jobs(&lab);
    let midnight = 19_675 * 86_400_000;
    let (late, early) = (UnixMillis(midnight - 60_000), UnixMillis(midnight + 60_000));
    let attempts = [(jobs[0], 1, late, 10.0), (jobs[0], 2, early, 5.0), (jobs[1], 1, early, 2.0), (jobs[5], 1, early, 100.0)];
    for (job, number, at, joules) in attempts {
        store.write([started(job, number), attempt_ended(job, number, at, joules)]).wait().unwrap();
    }
    store.write([started(jobs[3], 1)]).wait().unwrap();
    let reader = store.reader().unwrap();
    let sums = |by, ahead, user, span| -> Vec<(EnergyOf, f64, u64)> {
        reader.energy(by, ahead, user, span).unwrap().into_iter().map(|sum| (sum.of, sum.energy.0, sum.attempts)).collect()
    };
    let always = Span::default();
    let of_jobs = [(EnergyOf::Job(jobs[0]), 15.0, 2), (EnergyOf::Job(jobs[1]), 2.0, 1), (EnergyOf::Job(jobs[5]), 100.0, 1)];
    assert_eq!(sums(EnergyKind::Job, 0, None, always), of_jobs);
    let called: Vec<_> = reader.energy(EnergyKind::Job, 0, None, always).unwrap().into_iter().map(|sum| (sum.name, sum.array)).collect();
    let place = |index| Some(ArrayPlace { array: ArrayId(jobs[0].0), index });
    let names = [("Train-a", place(0)), ("eval", place(1)), ("100%", None)];
    assert_eq!(called, names.map(|(name, array)| (Some(name.to_owned()), array)));
    let (alice, bob) =
        (EnergyOf::User { uid: UserId(1000), name: "alice".to_owned() }, EnergyOf::User { uid: UserId(1001), name: "bob".to_owned() });
    assert_eq!(sums(EnergyKind::User, 0, None, always), [(alice, 17.0, 3), (bob, 100.0, 1)]);
    assert_eq!(sums(EnergyKind::Day, 0, Some(UserId(1000)), always), [(EnergyOf::Day(19_674), 10.0, 1), (EnergyOf::Day(19_675), 7.0, 2)]);
    assert_eq!(sums(EnergyKind::Day, 60, None, always), [(EnergyOf::Day(19_675), 117.0, 4)]);
    assert_eq!(sums(EnergyKind::Day, 0, None, Span { since: None, until: Some(early) }), [(EnergyOf::Day(19_674), 10.0, 1)]);
}
