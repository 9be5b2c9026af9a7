//! What attempts are said to have used, over many samples.

use carma_core::{AttemptId, DeviceId, Fraction, JobId, Metric, MiB, Seconds, ServerId, Time, Utilisation, Watts};
use carma_manager::measure::{Basis, Gap, GpuConsumer, Holder, Meter, Millijoules, UsageSample};
use proptest::prelude::*;

const GPU: DeviceId = DeviceId::gpu(ServerId(0), 0);

fn attempt(job: u64) -> AttemptId {
    AttemptId { job: JobId(job), number: 1 }
}

fn sample(second: u64, joules: u64, watts: f64, smact: f64, occupants: &[(Holder, u64)]) -> UsageSample {
    let occupant = |(holder, memory): &(Holder, u64)| GpuConsumer { holder: *holder, memory: Some(MiB(*memory)), busy: None };
    UsageSample {
        at: Time::from_secs(second),
        memory_used: occupants.iter().map(|(_, memory)| MiB(*memory)).sum(),
        energy: Some(Millijoules(joules * 1000)),
        power: Some(Watts(watts)),
        utilisation: Utilisation::of([(Metric::Smact, smact)]),
        occupants: occupants.iter().map(occupant).collect(),
    }
}

#[test]
fn a_job_alone_on_a_gpu_gets_all_of_its_energy() {
    let (mut meter, ours) = (Meter::default(), Holder::Attempt(attempt(1)));
    meter.add(GPU, &sample(0, 500, 50.0, 0.0, &[]));
    meter.add(GPU, &sample(10, 1000, 50.0, 0.0, &[]));
    meter.add(GPU, &sample(20, 3000, 200.0, 0.8, &[(ours, 6000)]));
    meter.add(GPU, &sample(40, 8000, 250.0, 0.5, &[(ours, 9000)]));
    assert_eq!(meter.energy(GPU).unwrap().nobody, Millijoules(500_000));
    let taken = meter.finish(attempt(1));
    let usage = &taken.gpus[&GPU];
    assert_eq!((taken.peak_memory(), taken.energy(), usage.basis), (MiB(9000), Millijoules(7_000_000), Basis::Alone));
    assert_eq!(
        (usage.levels[Metric::Smact].mean(), usage.levels[Metric::Smact].peak),
        (Some(Fraction::clamped(0.6)), Fraction::clamped(0.8))
    );
    let learned = taken.learned(Some(Seconds::from_secs(30)), None).unwrap();
    assert_eq!(
        (learned.memory, learned.utilisation[Metric::Smact], learned.seconds),
        (MiB(9000), usage.levels[Metric::Smact].mean(), Some(Seconds::from_secs(30)))
    );
    assert!((learned.watts.unwrap().0 - 7000.0 / 30.0).abs() < 1e-9);
    assert!(meter.so_far(attempt(1)).gpus.is_empty(), "it is forgotten");
    assert_eq!(taken.learned(None, None).unwrap().seconds, None);
}

#[test]
fn jobs_that_share_a_gpu_get_their_parts_with_a_confidence() {
    let (mut meter, [one, two]) = (Meter::default(), [1, 2].map(|job| Holder::Attempt(attempt(job))));
    meter.add(GPU, &sample(0, 0, 40.0, 0.0, &[]));
    // 10 s idle are 400 J, half for each; of the 600 J above, one gets a quarter.
    meter.add(GPU, &sample(10, 1000, 100.0, 0.8, &[(one, 1000), (two, 3000)]));
    let taken = meter.so_far(attempt(1));
    assert_eq!(taken.energy(), Millijoules(350_000));
    let usage = &taken.gpus[&GPU];
    assert_eq!((usage.basis, usage.levels[Metric::Smact].mean()), (Basis::Memory, Some(Fraction::clamped(0.2))));
    let learned = taken.learned(None, None).unwrap();
    assert_eq!((learned.memory, learned.utilisation[Metric::Smact], learned.watts), (MiB(1000), None, None), "guessed parts teach nothing");
    assert_eq!(meter.so_far(attempt(2)).energy(), Millijoules(650_000));
    let now = |meter: &Meter, job| meter.usage(attempt(job), GPU).unwrap().smact_now;
    assert_eq!([now(&meter, 1), now(&meter, 2)], [0.25, 0.75].map(|part| Some(Fraction::clamped(0.8 * part))));
    meter.add(GPU, &sample(20, 1500, 50.0, 0.3, &[(two, 3000)]));
    assert_eq!([now(&meter, 1), now(&meter, 2)], [None, Some(Fraction::clamped(0.3))], "one that is gone does nothing now");
}

#[test]
fn after_a_counter_reset_energy_comes_from_power_readings() {
    let (mut meter, ours) = (Meter::default(), Holder::Attempt(attempt(1)));
    meter.add(GPU, &sample(0, 5000, 100.0, 0.5, &[(ours, 10)]));
    meter.add(GPU, &sample(2, 7, 100.0, 0.5, &[(ours, 10)]));
    meter.add(GPU, &sample(3, 107, 100.0, 0.5, &[(ours, 10)]));
    assert_eq!(meter.so_far(attempt(1)).energy(), Millijoules(300_000));
}

/// A time without samples, with attempts that ran so many seconds in it.
fn gap(seconds: u64, present: &[(u64, u64)]) -> Gap {
    let present = present.iter().map(|(job, span)| (attempt(*job), Seconds::from_secs(*span))).collect();
    Gap { span: Seconds::from_secs(seconds), present }
}

/// A GPU that idles with 50 W, and has one job at 1000 J.
fn with_one_job() -> Meter {
    let mut meter = Meter::default();
    meter.add(GPU, &sample(0, 0, 50.0, 0.0, &[]));
    meter.add(GPU, &sample(10, 1000, 300.0, 0.9, &[(Holder::Attempt(attempt(1)), 100)]));
    serde_json::from_str(&serde_json::to_string(&meter).unwrap()).unwrap()
}

#[test]
fn energy_without_samples_goes_to_the_jobs_that_were_there_and_for_as_long() {
    let of = |meter: &Meter, job| meter.so_far(attempt(job)).energy().0 / 1000;
    let bridged = |joules: u64, gap: &Gap| {
        let mut meter = with_one_job();
        meter.bridge(GPU, Time::from_secs(50), Some(Millijoules(joules * 1000)), gap);
        let energy = meter.energy(GPU).unwrap();
        assert_eq!(energy.all, Millijoules(joules * 1000), "the counter goes on");
        (of(&meter, 1), of(&meter, 2), energy.nobody.0 / 1000)
    };
    // It runs on: 40 s at 300 W.
    assert_eq!(bridged(13_000, &gap(40, &[(1, 40)])), (13_000, 0, 0));
    // It ended after 4 s at 300 W; then the GPU idled.
    assert_eq!(bridged(1000 + 4 * 300 + 36 * 50, &gap(40, &[(1, 4)])), (1000 + 4 * 300, 0, 36 * 50));
    // It ended, and its end was told: it has its energy. The next job gets none of it.
    assert_eq!(bridged(13_000, &gap(40, &[(2, 4)])), (1000, 0, 12_000));
    assert_eq!(bridged(13_000, &gap(40, &[])), (1000, 0, 12_000));
    assert_eq!(bridged(13_000, &gap(0, &[(1, 0)])), (1000, 0, 12_000), "nobody can tell");
}

#[test]
fn energy_after_a_gap_counts_from_its_end() {
    let mut meter = with_one_job();
    meter.bridge(GPU, Time::from_secs(50), Some(Millijoules(13_000_000)), &gap(40, &[]));
    meter.add(GPU, &sample(60, 16_000, 300.0, 0.9, &[(Holder::Attempt(attempt(2)), 100)]));
    assert_eq!(meter.so_far(attempt(2)).energy(), Millijoules(3_000_000));
}

#[test]
fn a_clock_that_is_set_back_costs_one_sample() {
    let (mut meter, ours) = (Meter::default(), Holder::Attempt(attempt(1)));
    for (second, joules) in [(1000, 0), (1010, 1000), (10, 2000), (20, 3000)] {
        meter.add(GPU, &sample(second, joules, 100.0, 0.5, &[(ours, 10)]));
    }
    let taken = meter.so_far(attempt(1));
    assert_eq!((taken.energy(), taken.gpus[&GPU].watched), (Millijoules(3_000_000), Seconds::from_secs(20)));
}

#[derive(Debug, Clone)]
enum Step {
    Sample { seconds: u64, millijoules: u64, watts: f64, occupants: Vec<(u64, Option<u64>, Option<f64>)> },
    Finish(u64),
    Restart { seconds: u64, millijoules: u64, present: Vec<(u64, u64)> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let occupant = (0..4_u64, prop::option::of(0..50_000_u64), prop::option::of(0.0..1.0_f64));
    let sample = (0..100_u64, 0..1_000_000_u64, 0.0..400.0_f64, prop::collection::vec(occupant, 0..4)).prop_map(
        |(seconds, millijoules, watts, mut occupants)| {
            occupants.sort_by_key(|(who, ..)| *who);
            occupants.dedup_by_key(|(who, ..)| *who);
            Step::Sample { seconds, millijoules, watts, occupants }
        },
    );
    let present = prop::collection::vec((1..4_u64, 0..200_u64), 0..4).prop_map(|mut present| {
        present.sort_unstable();
        present.dedup_by_key(|(who, ..)| *who);
        present
    });
    let restart =
        (0..100_u64, 0..1_000_000_u64, present).prop_map(|(seconds, millijoules, present)| Step::Restart { seconds, millijoules, present });
    prop::collection::vec(prop_oneof![6 => sample, 1 => (1..4_u64).prop_map(Step::Finish), 1 => restart], 1..40)
}

proptest! {
    #[test]
    fn attributed_parts_sum_to_the_gpus_total(steps in steps()) {
        let (mut meter, mut second, mut counter, mut ended) = (Meter::default(), 0, 0, Millijoules::default());
        let mut begun = None;
        for step in steps {
            match step {
                Step::Sample { seconds, millijoules, watts, occupants } => {
                    (second, counter) = (second + seconds, counter + millijoules);
                    begun.get_or_insert(counter);
                    let occupant = |&(who, memory, busy): &(u64, Option<u64>, Option<f64>)| GpuConsumer {
                        holder: if who == 0 { Holder::Others } else { Holder::Attempt(attempt(who)) },
                        memory: memory.map(MiB),
                        busy: busy.map(Fraction::clamped),
                    };
                    let occupants = occupants.iter().map(occupant).collect();
                    meter.add(GPU, &UsageSample { energy: Some(Millijoules(counter)), occupants, ..sample(second, 0, watts, 0.9, &[]) });
                }
                Step::Finish(job) => ended += meter.finish(attempt(job)).energy(),
                Step::Restart { seconds, millijoules, present } => {
                    let saved = serde_json::to_string(&meter).unwrap();
                    let restored: Meter = serde_json::from_str(&saved).unwrap();
                    prop_assert_eq!(&restored, &meter);
                    meter = restored;
                    if begun.is_some() {
                        (second, counter) = (second + seconds, counter + millijoules);
                        meter.bridge(GPU, Time::from_secs(second), Some(Millijoules(counter)), &gap(seconds, &present));
                    }
                }
            }
        }
        let Some(begun) = begun else { return Ok(()) };
        let energy = meter.energy(GPU).unwrap();
        let running: Millijoules = (1..4).map(|job| meter.so_far(attempt(job)).energy()).sum();
        // The first sample has nothing to compare with, and goes by power over no time.
        prop_assert_eq!(energy.all, Millijoules(counter - begun));
        prop_assert_eq!(running + ended + energy.others + energy.nobody, energy.all);
    }
}
