//! CARMA's own policy: the device where the job delays all jobs there least, slows no job too much and adds enough.

use super::{Facts, Order, Policy, Prediction, Score, SharingPair, never};
use crate::forecast::{CoRunners, InterferenceProfile};
use crate::job::Interference;
use crate::obstacle::Obstacle;
use crate::sharing::CollocationMode;
use crate::telemetry::Metric;
use crate::tenant::Tenant;

pub(crate) static POLICY: Policy = Policy {
    name: "carma",
    about: "predicted progress: where the job delays all jobs least and slows no job too much",
    shares: true,
    screened: false,
    floor: true,
    order: Order::Predicted(Prediction { of: predict, least }),
    objects: never,
};

/// How much more delay is allowed for each waiting job per GPU: jobs that wait are delayed too.
const DELAY_PER_WAITING_JOB: f64 = 0.5;

/// The delay of all jobs by sharing, as a share of the job's own length.
fn score(delay: f64) -> Score {
    Score((delay.max(0.0) * 1e6) as u64)
}

/// No job is delayed less than the least sensitive one would be itself.
fn least(facts: &Facts<'_>) -> Score {
    let unfelt = InterferenceProfile { sensitivity: Interference::LEAST_SENSITIVITY, ..InterferenceProfile::IDLE };
    // The mode with less interference.
    let mode = CollocationMode::Mps { exclusive_process: false };
    score(co_runners(facts.tenants).slowdown(unfelt, mode) - 1.0)
}

fn co_runners(tenants: &[Tenant]) -> CoRunners {
    CoRunners::of(tenants.iter().map(|tenant| tenant.profile))
}

fn predict(encounter: &SharingPair<'_>) -> Result<Score, Obstacle> {
    let SharingPair { newcomer, mode, tenants, limits, length, now, pressure } = *encounter;
    let before = co_runners(tenants);
    let after = before.with(newcomer);
    for (metric, predicted, limit) in [(Metric::Smact, after.smact, limits.smact), (Metric::Drama, after.drama, limits.drama)] {
        if predicted > limit {
            return Err(Obstacle::PredictedActivity { metric, percent: percent(predicted), limit: percent(limit) });
        }
    }
    let too_slow = |slowed, slowdown| Obstacle::PredictedSlowdown { slowed, percent: percent(slowdown), limit: percent(limits.slowdown) };
    let worst = before.worst_slowdown(newcomer, mode);
    if worst > limits.slowdown {
        return Err(too_slow(None, worst));
    }
    let slowdown = before.slowdown(newcomer, mode);
    let length = length.get().max(1.0);
    let (mut gain, mut delay) = (1.0 / slowdown, length * (slowdown - 1.0));
    for tenant in tenants {
        let others = before.without(tenant.profile);
        let co_runners = others.with(newcomer);
        let worst = co_runners.worst_slowdown(tenant.profile, mode);
        if worst > limits.slowdown {
            return Err(too_slow(Some(tenant.attempt.job), worst));
        }
        let speeds = (1.0 / others.slowdown(tenant.profile, mode), 1.0 / co_runners.slowdown(tenant.profile, mode));
        gain -= speeds.0 - speeds.1;
        // They share the device until the first of them ends.
        let together = tenant.work.map_or(f64::INFINITY, |work| (work.ends_at(now) - now).get()).min(length * slowdown);
        delay += together * (speeds.0 / speeds.1 - 1.0);
    }
    if gain < limits.gain {
        return Err(Obstacle::LittleGain { percent: (gain * 100.0).round() as i32, least: (limits.gain * 100.0).round() as i32 });
    }
    let (delay, most) = (delay / length, limits.delay + DELAY_PER_WAITING_JOB * pressure);
    if delay > most {
        return Err(Obstacle::PredictedDelay { percent: percent(delay), limit: percent(most) });
    }
    Ok(score(delay))
}

fn percent(value: f64) -> u32 {
    (value * 100.0).round() as u32
}
