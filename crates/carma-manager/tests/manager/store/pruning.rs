//! Forgetting what is old or too much.

use std::fs;
use std::time::Duration;

use carma_core::*;
use carma_manager::request::Owner;
use carma_manager::store::*;

use super::lab::*;

const UNLIMITED: KeepRule = KeepRule { age: Duration::from_secs(u32::MAX as u64), most: u64::MAX };
const KEEP_ALL: Retention = Retention { jobs: UNLIMITED, events: UNLIMITED, samples: UNLIMITED };

fn hours(hours: u64) -> UnixMillis {
    UnixMillis(NOW.0 + hours * 3_600_000)
}

/// Jobs with an attempt and an event each. The second half is finished, one an hour.
fn store_with_jobs(lab: &Lab, count: u64) -> Store {
    let store = lab.open();
    let first = store.next_jobs(count).0;
    let changes = (first..first + count).flat_map(|id| {
        let id = JobId(id);
        let over = (id.0 - first >= count / 2).then(|| finished(id, Outcome::Succeeded, hours(id.0 - first)));
        [accepted(id), started(id, 1), event(Some(id), "accepted", NOW)].into_iter().chain(over)
    });
    store.write(changes.collect::<Vec<_>>()).wait().unwrap();
    store
}

#[test]
fn finished_jobs_are_pruned_by_age_and_count() {
    let lab = Lab::new();
    let store = store_with_jobs(&lab, 20);
    let age = Duration::from_secs(3_600 * 5);
    let by_age = Retention { jobs: KeepRule { age, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_age, hours(20)).unwrap(), Pruned { jobs: 5, ..Pruned::default() });
    let by_count = Retention { jobs: KeepRule { most: 2, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_count, hours(20)).unwrap().jobs, 3);
    assert_eq!(all_jobs(&store), (1..=10).chain(19..=20).map(JobId).collect::<Vec<_>>());
    let reader = store.reader().unwrap();
    assert_eq!(reader.job(JobId(11)).unwrap(), None);
    assert_eq!(reader.events_after(0, 100).unwrap().len(), 12);
    assert_eq!(reader.load().unwrap().running.len(), 12);
}

/// Finished jobs of a user, each with an event.
fn finished_jobs(store: &Store, owner: &Owner, count: u64, change: impl Fn(&mut StoredJob)) -> Vec<JobId> {
    let first = store.next_jobs(count).0;
    let ids: Vec<JobId> = (first..first + count).map(JobId).collect();
    let changes = ids.iter().flat_map(|id| {
        let mut job = stored(*id, owner.clone(), None);
        change(&mut job);
        (job.job, job.ended) = (ended(job.job, Outcome::Cancelled), Some(hours(id.0)));
        [Change::JobAccepted(Box::new(job)), event(Some(*id), "accepted", NOW)]
    });
    store.write(changes.collect::<Vec<_>>()).wait().unwrap();
    ids
}

#[test]
fn the_jobs_of_one_user_do_not_slow_down_another() {
    let lab = Lab::new();
    let store = lab.open();
    let alices = finished_jobs(&store, &alice(), 1, |_| {})[0];
    store.write([event(None, "started", NOW)]).wait().unwrap();
    let bobs = finished_jobs(&store, &bob(), 1_200, |_| {});
    let most = |most| KeepRule { most, ..UNLIMITED };
    let by_count = Retention { jobs: most(100), events: most(40), ..KEEP_ALL };
    assert_eq!(store.prune(&by_count, NOW).unwrap(), Pruned { jobs: 1_100, events: 60, samples: 0 });
    assert_eq!(all_jobs(&store), [&[alices], &bobs[1_100..]].concat());
    let events = store.reader().unwrap().events_after(0, 100).unwrap();
    let of = |job: Option<JobId>| events.iter().filter(|stored| stored.event.job == job).count();
    assert_eq!((events.len(), of(Some(alices)), of(None)), (42, 1, 1));
}

#[test]
fn jobs_with_checkpoints_are_pruned_only_by_age() {
    let lab = Lab::new();
    let store = lab.open();
    let may_checkpoint = |job: &mut StoredJob| job.request.may_checkpoint = true;
    let never_started = finished_jobs(&store, &alice(), 1, may_checkpoint)[0];
    let ran = finished_jobs(&store, &alice(), 1, |job| {
        may_checkpoint(job);
        job.job.attempts = 1;
    })[0];
    let others = finished_jobs(&store, &alice(), 3, |_| {});
    let by_count = Retention { jobs: KeepRule { most: 1, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_count, NOW).unwrap().jobs, 4, "the oldest, as far as they have no checkpoint");
    assert_eq!(all_jobs(&store), [ran]);
    assert!(others.iter().chain([&never_started]).all(|job| store.reader().unwrap().job(*job).unwrap().is_none()));
    let by_age = Retention { jobs: KeepRule { age: Duration::ZERO, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_age, hours(99)).unwrap().jobs, 1);
}

#[test]
fn unfinished_jobs_are_not_pruned_and_numbers_are_unique() {
    let lab = Lab::new();
    let store = store_with_jobs(&lab, 6);
    store.write([Change::JobsDeleted((1..=6).map(JobId).collect())]).wait().unwrap();
    assert_eq!(all_jobs(&store), [1, 2, 3].map(JobId));
    drop(store);
    assert_eq!(submit(&lab.open()), JobId(7));
}

#[test]
fn events_and_samples_are_pruned_in_steps() {
    let lab = Lab::new();
    let store = lab.open();
    let events = (0..2_000).map(|hour| event(None, "tick", hours(hour)));
    let samples = (0..2_000).map(|minute| Change::SampleStored(sample(GPU, NOW.minute().0 + minute, 1, 0.5)));
    store.write(events.chain(samples).collect::<Vec<_>>()).wait().unwrap();
    let by_count = Retention { events: KeepRule { most: 700, ..UNLIMITED }, samples: KeepRule { most: 300, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_count, NOW).unwrap(), Pruned { events: 1_300, samples: 1_700, jobs: 0 });
    let hour = Duration::from_secs(3_600);
    let by_age = Retention { events: KeepRule { age: hour * 100, ..UNLIMITED }, samples: KeepRule { age: hour, ..UNLIMITED }, ..KEEP_ALL };
    assert_eq!(store.prune(&by_age, hours(2_000)).unwrap(), Pruned { events: 600, samples: 300, jobs: 0 });
    assert_eq!(store.prune(&by_age, hours(9_999)).unwrap().events, 100);
    store.write([event(None, "tick", NOW)]).wait().unwrap();
    assert_eq!(store.reader().unwrap().events_after(0, 10).unwrap()[0].sequence, 2_001);
    assert_eq!(store.prune(&KEEP_ALL, NOW).unwrap(), Pruned::default());
}

#[test]
fn pruning_does_a_bounded_part_and_continues() {
    let lab = Lab::new();
    let store = lab.open();
    store.write((0..1_800).map(|hour| event(None, "tick", hours(hour))).collect::<Vec<_>>()).wait().unwrap();
    let by_age = Retention { events: KeepRule { age: Duration::from_secs(3_600), ..UNLIMITED }, ..KEEP_ALL };
    let parts = std::iter::from_fn(|| {
        let (pruned, done) = store.prune_some(&by_age, hours(9_999), 2).unwrap();
        (pruned.events > 0).then_some((pruned.events, done))
    });
    assert_eq!(parts.collect::<Vec<_>>(), [(1_000, false), (800, false)]);
    assert_eq!(store.prune_some(&by_age, hours(9_999), 2).unwrap(), (Pruned::default(), true));
}

#[test]
fn deleted_rows_free_space_in_the_file_system() {
    let lab = Lab::new();
    let store = lab.open();
    let long = "x".repeat(1_000);
    store.write((0..3_000).map(|_| event(None, &long, NOW)).collect::<Vec<_>>()).wait().unwrap();
    drop(store);
    let before = fs::metadata(lab.path()).unwrap().len();
    let store = lab.open();
    store.prune(&Retention { events: KeepRule { most: 10, ..UNLIMITED }, ..KEEP_ALL }, NOW).unwrap();
    drop(store);
    let after = fs::metadata(lab.path()).unwrap().len();
    assert!(after * 4 < before, "{before} bytes became {after}");
}
