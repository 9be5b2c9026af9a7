//! CARMA's own policy: the device where the job adds most to total progress, slows no job too much and adds enough.

use super::{Encounter, Facts, Order, Policy, Prediction, Score, never};
use crate::forecast::{CoRunners, InterferenceProfile};
use crate::job::Interference;
use crate::obstacle::Obstacle;
use crate::sharing::CollocationMode;
use crate::telemetry::Metric;
use crate::tenant::Tenant;

pub(crate) static POLICY: Policy = Policy {
    name: "carma",
    about: "predicted progress: where the job adds most and slows no job too much",
    shares: true,
    screened: false,
    floor: true,
    order: Order::Predicted(Prediction { of: predict, least }),
    objects: never,
};

/// Progress as a score: a job that adds a whole GPU's worth has the best.
fn score(gain: f64) -> Score {
    Score(((2.0 - gain).max(0.0) * 1e6) as u64)
}

/// A newcomer adds no more than its own progress.
fn least(facts: &Facts<'_>) -> Score {
    let unfelt = InterferenceProfile { sensitivity: Interference::LEAST_SENSITIVITY, ..InterferenceProfile::IDLE };
    // Of two modes, the one that disturbs less.
    let mode = CollocationMode::Mps { exclusive_process: false };
    score(1.0 / co_runners(facts.tenants).slowdown(unfelt, mode))
}

fn co_runners(tenants: &[Tenant]) -> CoRunners {
    CoRunners::of(tenants.iter().map(|tenant| tenant.profile))
}

fn predict(encounter: &Encounter<'_>) -> Result<Score, Obstacle> {
    let Encounter { newcomer, mode, tenants, limits } = *encounter;
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
    let mut gain = 1.0 / before.slowdown(newcomer, mode);
    for tenant in tenants {
        let others = before.without(tenant.profile);
        let co_runners = others.with(newcomer);
        let worst = co_runners.worst_slowdown(tenant.profile, mode);
        if worst > limits.slowdown {
            return Err(too_slow(Some(tenant.attempt.job), worst));
        }
        gain -= 1.0 / others.slowdown(tenant.profile, mode) - 1.0 / co_runners.slowdown(tenant.profile, mode);
    }
    if gain < limits.gain {
        return Err(Obstacle::LittleGain { percent: percent(gain.max(0.0)), least: percent(limits.gain) });
    }
    Ok(score(gain))
}

fn percent(value: f64) -> u32 {
    (value * 100.0).round() as u32
}
