//! How busy ended attempts kept their GPUs over time.

use std::time::Duration;

use carma_core::*;
use carma_manager::store::*;

use super::lab::*;

fn at(second: u64) -> UnixMillis {
    UnixMillis(NOW.0 + second * 1000)
}

fn kept(job: JobId, second: u64) -> Change {
    let utilisation = UtilisationOverTime::default().with(Metric::Smact, vec![Some(0.5), None]);
    let utilisation =
        AttemptUtilisation { attempt: AttemptId { job, number: 1 }, device: GPU, since: at(0), span: Seconds::from_secs(5), utilisation };
    Change::UtilisationKept { utilisation: Box::new(utilisation), ended: at(second) }
}

#[test]
fn it_is_kept_with_the_attempt_and_forgotten_with_the_minutes_or_the_job() {
    let lab = Lab::new();
    let store = lab.open();
    let [early, late] = [(); 2].map(|()| submit(&store));
    let placement =
        || Placement { server: ServerId(0), devices: vec![Granted { device: GPU, reserved: MiB(4_000), limits: Limits::Streams }] };
    let launched = |job| Change::AttemptStarted { attempt: AttemptId { job, number: 1 }, placement: placement(), at: at(0) };
    let minutes = [NOW.minute().0, NOW.minute().0 + 100].map(|minute| Change::SampleStored(sample(GPU, minute, 60, 0.5)));
    let changes = [launched(early), launched(late), kept(early, 10), kept(late, 5990), kept(JobId(99), 10)];
    store.write(changes.into_iter().chain(minutes).collect::<Vec<_>>()).wait().unwrap();
    let reader = store.reader().unwrap();
    let of = |job| reader.utilisation_of(job).unwrap();
    let [found] = of(early).try_into().unwrap();
    assert_eq!((found.since, found.utilisation[Metric::Smact].clone()), (at(0), vec![Some(0.5), None]));
    assert_eq!(of(JobId(99)), [], "a deleted attempt is ignored");
    let keep = |seconds| KeepRule { age: Duration::from_secs(seconds), most: u64::MAX };
    let ages = Retention { jobs: keep(u32::MAX.into()), events: keep(u32::MAX.into()), samples: keep(600) };
    store.prune(&ages, at(6000)).unwrap();
    assert_eq!((of(early).len(), of(late).len()), (0, 1));
    store.write([attempt_ended(late, 1, at(5990), 1.0), finished(late, Outcome::Succeeded, at(5990))]).wait().unwrap();
    store.write([Change::JobsDeleted(vec![late])]).wait().unwrap();
    assert_eq!(of(late), []);
    assert_eq!(reader.damage().unwrap(), [""; 0]);
}
