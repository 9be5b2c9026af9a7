//! Turns under fair share, against accounts that are worked out apart from the scheduler.

use std::collections::BTreeMap;

use carma_core::*;
use proptest::prelude::*;

use super::stream::{Arrival, run};
use crate::lab::{Lab, job, secs};

/// What every job should take, whatever it does.
const EXPECTED: u64 = 60;

/// Jobs that each need a whole GPU and have equal expected lengths.
fn equal_jobs() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0_u64..20, 0_u32..4, 5_u64..200).prop_map(|(gap, user, used)| {
        let (user, group) = (UserId(user), GroupId(user / 2));
        let spec = JobSpec { user, group, expected_duration: Some(secs(EXPECTED)), exclusive: true, ..job(0) };
        Arrival::new(gap, used, spec)
    });
    prop::collection::vec(one, 1..40)
}

/// Exclusive GPUs, or our own policy with an aim.
fn rules(aim: Option<Aim>, half_life: f64, shares: &[ShareSettings]) -> Config {
    let queue = QueueSettings {
        fair_share: Some(true),
        half_life: Some(half_life),
        fair_share_reserve: Some(0.0),
        shares: Some(shares.to_vec()),
        ..QueueSettings::default()
    };
    let policy = if aim.is_some() { "carma" } else { "exclusive" };
    Settings { aim, policy: Some(policy.to_owned()), queue: Some(queue), ..Settings::default() }.check().unwrap()
}

/// Which job was launched when, by the test's own notes.
struct Accounts {
    launched: BTreeMap<JobId, Time>,
    half_life: f64,
}

impl Accounts {
    /// GPU-seconds that a job has had by now, each counting half after a half-life, and those it should still take.
    fn charge(&self, job: &Job, now: Time) -> f64 {
        let Some(begin) = self.launched.get(&job.id()) else { return 0.0 };
        let (end, due) = match job.state {
            State::Done { at, .. } => (at, 0.0),
            _ => (now, (*begin + secs(EXPECTED) - now).get()),
        };
        let left_of = |moment: Time| (-(now - moment).get() / self.half_life).exp2();
        self.half_life / std::f64::consts::LN_2 * (left_of(end) - left_of(*begin)) + due
    }

    /// What all these jobs were charged for, over a share.
    fn usage_over_share(&self, scheduler: &Scheduler, counts: impl Fn(&JobSpec) -> bool, share: f64) -> f64 {
        let charges = scheduler.jobs().filter(|job| counts(&job.spec)).map(|job| self.charge(job, scheduler.now()));
        charges.sum::<f64>() / share
    }

    /// Usage over share of a job's group, and of its user within the group.
    fn of(&self, scheduler: &Scheduler, job: &JobSpec) -> (f64, f64) {
        let shares = &scheduler.config().queue.shares;
        let group = self.usage_over_share(scheduler, |spec| spec.group == job.group, shares.of_group(job.group));
        let user = self.usage_over_share(scheduler, |spec| (spec.group, spec.user) == (job.group, job.user), shares.of_user(job.user));
        (group, user)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// Each launched job is of the waiting group with the lowest usage over share, and of the user with the lowest within it. What an account
    /// forgets as too little to matter may make a difference of less than a GPU-second.
    #[test]
    fn the_user_who_used_less_of_its_share_goes_first(
        jobs in equal_jobs(),
        gpus in 1_u16..4,
        half_life in prop::sample::select(vec![60.0, 600.0, 86_400.0]),
        weighted in any::<bool>(),
        aim in prop::option::of(prop::sample::select(Aim::ALL.to_vec())),
    ) {
        let shares = [ShareSettings { uid: Some(1), share: 3.0, gid: None }, ShareSettings { gid: Some(1), share: 2.0, uid: None }];
        let mut accounts = Accounts { launched: BTreeMap::new(), half_life };
        run(&mut Lab::new(rules(aim, half_life, if weighted { &shares } else { &[] }), gpus), &jobs, |lab, actions| {
            for action in actions {
                let Action::Launch { attempt, .. } = action else { continue };
                let launched = &lab.scheduler.job(attempt.job).unwrap().spec;
                let (group, user) = accounts.of(&lab.scheduler, launched);
                for waiting in lab.scheduler.queue().map(|job| &job.spec) {
                    let (other_group, other_user) = accounts.of(&lab.scheduler, waiting);
                    let goes_first = if launched.group == waiting.group { user < other_user + 1.0 } else { group < other_group + 1.0 };
                    assert!(goes_first, "{} was launched before {}: {group} {user}, {other_group} {other_user}", launched.id, waiting.id);
                }
                accounts.launched.insert(attempt.job, lab.now);
            }
        });
    }
}
