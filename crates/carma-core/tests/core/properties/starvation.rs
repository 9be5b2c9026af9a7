//! The bound on waiting: however many newer and shorter jobs come, an old one has its turn.

use carma_core::*;
use proptest::prelude::*;

use super::stream::{Arrival, run};
use crate::lab::{Lab, job, secs};

/// GPUs of the server.
const GPUS: u16 = 2;
/// No job of the stream runs for longer.
const LONGEST: u64 = 30;

/// More than the server can do, and each expected to be shorter than the patient job. Expectations are wrong by up to a factor of 2.
fn stream() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (4_u64..12, 15..=LONGEST, 8_u64..39).prop_map(|(gap, used, expected)| {
        let spec = JobSpec { expected_duration: Some(secs(expected)), time_limit: Some(secs(used)), exclusive: true, ..job(0) };
        Arrival::new(gap, used, spec)
    });
    prop::collection::vec(one, 150)
}

/// A job that comes first, runs for a while, fails, and waits to be tried again.
fn patient() -> impl Strategy<Value = Arrival> {
    (1..=u32::from(GPUS), 20_u64..60, 40_u64..60).prop_map(|(gpus, had, expected)| Arrival {
        gap: 0,
        spec: JobSpec {
            gpus,
            exclusive: true,
            expected_duration: Some(secs(expected)),
            retries: RetryBudget { failure: 1, ..RetryBudget::default() },
            ..job(0)
        },
        runs: vec![(had, Verdict::Failed { code: 1 }), (expected, Verdict::Succeeded)],
    })
}

/// In strict order, or with what our own aims keep by prediction.
fn rules(aim: Option<Aim>, order: QueueOrder, ageing: f64, backfill: f64, reserve_after: f64) -> Config {
    let queue = QueueSettings {
        order: Some(order),
        ageing: Some(ageing),
        backfill: Some(backfill),
        reserve_after: Some(reserve_after),
        critical: if aim.is_some() { None } else { Some(0.0) },
        ..QueueSettings::default()
    };
    let policy = if aim.is_some() { "carma" } else { "exclusive" };
    Settings { aim, policy: Some(policy.to_owned()), queue: Some(queue), ..Settings::default() }.check().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// No job goes before the patient job that came more than its work over `queue.ageing` after it, and once it has waited for
    /// `queue.reserve_after` no job that passes it makes it wait longer. So it waits for the jobs that came until then, one after another at
    /// worst, and not for the end of the stream.
    #[test]
    fn an_old_job_is_not_starved_by_later_jobs(
        patient in patient(),
        stream in stream(),
        aim in prop::option::of(prop::sample::select(Aim::ALL.to_vec())),
        order in prop::sample::select(vec![QueueOrder::Shortest, QueueOrder::LeastAttained]),
        ageing in prop::sample::select(vec![1.0, 4.0]),
        backfill in prop::sample::select(vec![0.0, 100.0]),
        reserve_after in prop::sample::select(vec![0.0, 60.0]),
    ) {
        let mut lab = Lab::new(rules(aim, order, ageing, backfill, reserve_after), GPUS);
        let (submitted, had) = (lab.now, patient.runs[0].0);
        let seconds = if order == QueueOrder::Shortest { patient.runs[1].0 } else { had };
        let until = submitted + secs(seconds * u64::from(patient.spec.gpus)).times(1.0 / ageing);
        let mut restarted = None;
        let mut ahead = 0;
        run(&mut lab, &[vec![patient], stream].concat(), |lab, actions| {
            for action in actions {
                let Action::Launch { attempt, reason, .. } = action else { continue };
                let old = lab.scheduler.job(JobId(1)).unwrap();
                if attempt.job == old.id() && attempt.number == 2 {
                    restarted = Some(lab.now);
                } else if attempt.job != old.id() && lab.scheduler.job(attempt.job).unwrap().submitted_at <= until {
                    ahead += 1;
                } else if old.state.waits_since().is_some() && reason.passed.is_none() {
                    panic!("{} went before the old job at {}", attempt.job, lab.now);
                }
            }
        });
        let waits_in_turn = until.max(submitted + secs(had)) + Seconds::new(reserve_after).unwrap();
        let bound = waits_in_turn + secs(LONGEST * (ahead + 1));
        prop_assert!(restarted.is_some_and(|at| at <= bound), "started again at {restarted:?}, not by {bound}");
        prop_assert!(bound < lab.now, "the stream is over by then");
    }
}
