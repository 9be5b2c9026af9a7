//! What is written reads back, after a restart too.

use std::sync::mpsc;

use carma_core::*;
use carma_manager::store::*;

use rusqlite::Connection;

use super::lab::*;

#[test]
fn a_job_reads_back_with_its_attempts_and_its_timeline() {
    let lab = Lab::new();
    let store = lab.open();
    let id = store.next_jobs(1);
    let job = stored(id, alice(), Some("résumé; DROP TABLE jobs"));
    let changes =
        [Change::JobAccepted(Box::new(job.clone())), event(Some(id), "accepted", NOW), started(id, 1), event(None, "another's", NOW)];
    store.write(changes).wait().unwrap();
    let loaded = store.reader().unwrap().load().unwrap();
    assert_eq!(loaded.jobs, [unfinished(&job)]);
    assert_eq!(store.reader().unwrap().request(id).unwrap().as_ref(), Some(&job.request));
    let attempt = &loaded.running[0];
    assert_eq!((attempt.placement.clone(), &attempt.end), (placement(), &None));

    store.write([attempt_ended(id, 1, NOW, 12.5), finished(id, Outcome::Succeeded, UnixMillis(NOW.0 + 5))]).wait().unwrap();
    drop(store);
    let reader = lab.open().reader().unwrap();
    let history = reader.job(id).unwrap().unwrap();
    assert_eq!(history.job.request, job.request);
    assert_eq!(history.job.ended, Some(UnixMillis(NOW.0 + 5)));
    assert_eq!(history.job.job.state.outcome(), Some(&Outcome::Succeeded));
    let Change::AttemptEnded { end, .. } = attempt_ended(id, 1, NOW, 12.5) else { unreachable!() };
    assert_eq!(history.attempts[0].end, Some(*end));
    assert_eq!(history.events.iter().map(|event| event.event.event.kind()).collect::<Vec<_>>(), ["accepted"]);
    let loaded = reader.load().unwrap();
    assert!(loaded.jobs.is_empty() && loaded.running.is_empty());
    assert_eq!(reader.job(JobId(99)).unwrap(), None);
}

#[test]
fn jobs_that_cannot_be_understood_are_set_aside() {
    let lab = Lab::new();
    let store = lab.open();
    let [garbled, attempted, good] = [(); 3].map(|()| submit(&store));
    store.write([started(garbled, 1), started(attempted, 1), started(good, 1)]).wait().unwrap();
    drop(store);
    let database = Connection::open(lab.path()).unwrap();
    database.execute("UPDATE job_states SET state = '{\"spec\": 7}' WHERE job = ?1", [garbled.0]).unwrap();
    database.execute("UPDATE attempts SET placement = 'nowhere' WHERE job = ?1", [attempted.0]).unwrap();
    drop(database);
    let loaded = lab.open().reader().unwrap().load().unwrap();
    assert_eq!(loaded.jobs.iter().map(|unfinished| unfinished.job.id()).collect::<Vec<_>>(), [good]);
    assert_eq!(loaded.running.iter().map(|stored| stored.attempt.job).collect::<Vec<_>>(), [good]);
    let [(first, why), (second, _)] = &loaded.unreadable[..] else { panic!("{:?}", loaded.unreadable) };
    assert_eq!([*first, *second], [garbled, attempted]);
    assert!(why.contains("invalid type"), "{why}");
}

#[test]
fn a_batch_that_fails_changes_nothing_and_leaves_other_batches_alone() {
    let lab = Lab::new();
    let store = lab.open();
    let first = submit(&store);
    let nobody = AttemptId { job: JobId(77), number: 1 };
    let refused = [
        (vec![accepted(JobId(50)), accepted(first)], Refusal::DuplicateJob(first)),
        (vec![accepted(JobId(51)), finished(JobId(77), Outcome::Cancelled, NOW)], Refusal::UnknownJob(JobId(77))),
        (vec![event(None, "lost", NOW), started(JobId(77), 1)], Refusal::UnknownJob(JobId(77))),
        (vec![event(None, "lost", NOW), attempt_ended(JobId(77), 1, NOW, 0.0)], Refusal::NotUnderWay(nobody)),
        (vec![started(first, 1), started(first, 1)], Refusal::DuplicateAttempt(AttemptId { job: first, number: 1 })),
    ];
    // Given at once, so that they share commits with one that fits.
    let tickets: Vec<_> = refused.into_iter().map(|(changes, refusal)| (store.write(changes), refusal)).collect();
    let good = store.write([accepted(JobId(60))]);
    for (ticket, refusal) in tickets {
        assert_eq!(ticket.wait(), Err(WriteError::Refused(refusal)));
    }
    good.wait().unwrap();
    assert_eq!(all_jobs(&store), [first, JobId(60)]);
    let reader = store.reader().unwrap();
    assert!(reader.events_after(0, 10).unwrap().is_empty() && reader.load().unwrap().running.is_empty());
}

#[test]
fn drained_gpus_and_machine_changes_are_stored_until_undone() {
    let lab = Lab::new();
    let gpu = "GPU-5fd15f35-e148-2992-4ecb-9825e534f253";
    let mode = serde_json::json!({"compute_mode": {"gpu": gpu, "before": "shared", "set": "exclusive_process"}});
    let mode: MachineChange = serde_json::from_value(mode).unwrap();
    let mps = MachineChange::MpsDaemon { gpu: gpu.parse().unwrap(), pipes: "/run/pipes".into(), logs: "/run/logs".into() };
    let other = GPU.instance(1);
    let causes = [DrainCause::Faults("Xid 95".to_owned()), DrainCause::User("ada".to_owned())];
    let cause = |device: DeviceId| causes[usize::from(device == other)].clone();
    let faulty = |device| Drained { device, since: NOW, cause: cause(device) };
    let drained = |device| Change::GpuDrained(faulty(device));
    let changes = [Change::MachineChanged(mode.clone()), Change::MachineChanged(mps.clone()), drained(GPU), drained(other), drained(GPU)];
    lab.open().write(changes).wait().unwrap();
    let store = lab.open();
    let loaded = store.reader().unwrap().load().unwrap();
    assert_eq!(loaded.machine_changes, [mode.clone(), mps.clone()]);
    assert_eq!(loaded.drained, [faulty(GPU), faulty(other)]);
    store.write([Change::MachineRestored(mode), Change::GpuResumed { device: GPU }]).wait().unwrap();
    let loaded = store.reader().unwrap().load().unwrap();
    assert_eq!((loaded.machine_changes, loaded.drained), (vec![mps], vec![faulty(other)]));
}

#[test]
fn a_clock_that_goes_back_changes_no_order_and_not_the_managers_own_time() {
    let lab = Lab::new();
    let store = lab.open();
    let [first, second] = [submit(&store), submit(&store)];
    let earlier = UnixMillis(NOW.0 - 3_600_000);
    store.write([Change::ClockAdvanced(Time::from_secs(500)), Change::ClockAdvanced(Time::from_secs(20))]).wait().unwrap();
    store.write([event(Some(first), "one", NOW), event(Some(first), "two", earlier)]).wait().unwrap();
    store.write([finished(second, Outcome::Succeeded, earlier)]).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.load().unwrap().clock, Time::from_secs(500));
    let kinds: Vec<_> = reader.events_after(0, 10).unwrap().into_iter().map(|event| event.event.event.kind()).collect();
    assert_eq!(kinds, ["one", "two"]);
    assert_eq!(all_jobs(&store), [first, second]);
    assert_eq!(reader.job(second).unwrap().unwrap().job.ended, Some(earlier));
}

#[test]
fn the_sample_with_more_readings_is_kept() {
    let lab = Lab::new();
    let store = lab.open();
    let means = [
        sample(GPU, 10, 60, 0.6),
        sample(GPU, 10, 12, 0.1),
        sample(GPU, 11, 30, 0.3),
        sample(GPU, 11, 31, 0.9),
        sample(GPU.instance(0), 10, 1, 0.0),
    ];
    store.write(means.map(Change::SampleStored)).wait().unwrap();
    let kept = store.reader().unwrap().samples(GPU, UnixMinute(10)..UnixMinute(12)).unwrap();
    assert_eq!(kept, [means[0], means[3]]);
}

#[test]
fn a_callback_runs_after_the_commit() {
    let lab = Lab::new();
    let store = lab.open();
    let reader = store.reader().unwrap();
    let (tell, told) = mpsc::channel();
    let id = store.next_jobs(1);
    store.write_then([accepted(id)], move |result| tell.send((result, reader.job(id).unwrap().is_some())).unwrap());
    assert_eq!(told.recv().unwrap(), (Ok(()), true));
    let (tell, told) = mpsc::channel();
    store.write_then([accepted(id)], move |result| tell.send(result).unwrap());
    // Closing waits for all that was given before.
    drop(store);
    assert_eq!(told.try_recv().unwrap(), Err(WriteError::Refused(Refusal::DuplicateJob(id))));
}

#[test]
fn counters_add_up_and_unknown_counters_are_ignored() {
    use carma_manager::tally::{Histogram, Tallies, Tally};

    let lab = Lab::new();
    let store = lab.open();
    let mut more = Tallies::default();
    more.count(Tally::Ended("out_of_memory".to_owned()));
    more.add(Tally::Energy("alice".to_owned()), 0.25);
    more.observe(Histogram::Wait, 2.0);
    for _ in 0..4 {
        store.write([Change::Tallied(more.clone())]).wait().unwrap();
    }
    drop(store);
    // A later version may count something else.
    Connection::open(lab.path()).unwrap().execute("INSERT INTO tallies VALUES ('{\"wonders\":7}', 7)", []).unwrap();
    let kept = lab.open().reader().unwrap().tallies().unwrap();
    assert_eq!(kept.0, more.0.into_iter().map(|(tally, much)| (tally, much * 4.0)).collect());
}
