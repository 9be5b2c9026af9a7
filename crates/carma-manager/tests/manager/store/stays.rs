//! Who was on a device, and with how much memory.

use std::time::Duration;

use carma_core::*;
use carma_manager::store::*;

use super::lab::*;

fn at(second: u64) -> UnixMillis {
    UnixMillis(NOW.0 + second * 1000)
}

fn span(from: u64, to: u64) -> std::ops::Range<UnixMillis> {
    at(from)..at(to)
}

fn launched(job: JobId, second: u64, gpus: &[u16]) -> Change {
    let granted = |ordinal: &u16| Granted { device: DeviceId::gpu(ServerId(0), *ordinal), reserved: MiB(4_000), limits: Limits::Streams };
    let placement = Placement { server: ServerId(0), devices: gpus.iter().map(granted).collect() };
    Change::AttemptStarted { attempt: AttemptId { job, number: 1 }, placement, at: at(second) }
}

fn stepped(job: JobId, second: u64, memory: u64) -> Change {
    let step = MemoryStep { at: at(second), memory: MiB(memory) };
    Change::MemoryChanged { attempt: AttemptId { job, number: 1 }, device: GPU, step }
}

fn who(reader: &Reader, gpu: u16, span: std::ops::Range<UnixMillis>) -> Vec<u64> {
    reader.stays(DeviceId::gpu(ServerId(0), gpu), span).unwrap().iter().map(|stay| stay.attempt.job.0).collect()
}

#[test]
fn the_timeline_holds_jobs_and_their_memory_in_a_period() {
    let lab = Lab::new();
    let store = lab.open();
    let [one, two, three] = [(); 3].map(|()| submit(&store));
    let changes = [
        launched(two, 200, &[0, 1]),
        launched(one, 100, &[0]),
        stepped(one, 110, 300),
        stepped(one, 120, 3_000),
        stepped(one, 150, 3_500),
        attempt_ended(one, 1, at(300), 1.0),
        launched(three, 400, &[1]),
        attempt_ended(three, 1, at(500), 1.0),
    ];
    store.write(changes).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(who(&reader, 0, span(0, 1000)), [one.0, two.0], "in the order of their launch");
    assert_eq!(who(&reader, 0, span(0, 100)), [0; 0]);
    assert_eq!(who(&reader, 0, span(300, 1000)), [two.0], "one that runs is there until now");
    assert_eq!(who(&reader, 1, span(450, 460)), [two.0, three.0]);
    let stay = |from, to| reader.stays(GPU, span(from, to)).unwrap().remove(0);
    let steps = |from, to| stay(from, to).memory.iter().map(|step| (step.at.0 - NOW.0) / 1000).collect::<Vec<_>>();
    assert_eq!((steps(0, 1000), steps(130, 140), steps(105, 115)), (vec![110, 120, 150], vec![120], vec![110]));
    let whole = stay(0, 1000);
    assert_eq!((whole.user.as_str(), whole.reserved, whole.launched, whole.ended), ("alice", MiB(4_000), at(100), Some(at(300))));
    assert_eq!((whole.ending.map(|ending| ending.text), whole.memory[1].memory), (Some("succeeded".to_owned()), MiB(3_000)));
}

#[test]
fn memory_steps_are_pruned_with_minutes_and_jobs() {
    let lab = Lab::new();
    let store = lab.open();
    let [over, runs] = [(); 2].map(|()| submit(&store));
    let minutes = [NOW.minute().0, NOW.minute().0 + 100].map(|minute| Change::SampleStored(sample(GPU, minute, 60, 0.5)));
    let changes =
        [launched(over, 0, &[0]), stepped(over, 1, 300), launched(runs, 0, &[0]), stepped(runs, 1, 400), stepped(JobId(99), 1, 500)];
    store.write(changes.into_iter().chain(minutes).collect::<Vec<_>>()).wait().unwrap();
    store.write([attempt_ended(over, 1, at(10), 1.0), finished(over, Outcome::Succeeded, at(10))]).wait().unwrap();
    let keep = |seconds| KeepRule { age: Duration::from_secs(seconds), most: u64::MAX };
    let ages = Retention { jobs: keep(u32::MAX.into()), events: keep(u32::MAX.into()), samples: keep(600) };
    assert_eq!(store.prune(&ages, at(6000)).unwrap().samples, 1);
    let reader = store.reader().unwrap();
    let memory = |stays: Vec<GpuStay>| stays.iter().map(|stay| stay.memory.len()).collect::<Vec<_>>();
    assert_eq!(memory(reader.stays(GPU, span(0, 9000)).unwrap()), [0, 1]);
    store.write([Change::JobsDeleted(vec![over])]).wait().unwrap();
    assert_eq!(who(&reader, 0, span(0, 9000)), [runs.0]);
    assert_eq!(reader.damage().unwrap(), [""; 0]);
}

#[test]
fn a_period_with_very_many_attempts_has_the_longest_of_them() {
    let lab = Lab::new();
    let store = lab.open();
    let first = store.next_jobs(1_003).0;
    let jobs: Vec<JobId> = (first..first + 1_003).map(JobId).collect();
    // The first of all is still running, and the next ones took ever longer.
    let changes = jobs.iter().enumerate().flat_map(|(place, job)| {
        let end = attempt_ended(*job, 1, at(1_000 + place as u64), 1.0);
        [accepted(*job), launched(*job, 1_000, &[0])].into_iter().chain((place > 0).then_some(end))
    });
    store.write(changes.collect::<Vec<_>>()).wait().unwrap();
    let reader = store.reader().unwrap();
    let expected: Vec<u64> =
        jobs.iter().filter(|job| ![2, 3, 4].map(|place| first + place - 1).contains(&job.0)).map(|job| job.0).collect();
    assert_eq!(who(&reader, 0, span(0, 9_000)), expected);
    assert_eq!(who(&reader, 0, span(0, 9_000)).len(), 1_000);
}
