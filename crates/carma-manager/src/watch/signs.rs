//! Signs of life of an attempt.

use std::time::SystemTime;

use carma_core::{AttemptId, Fraction, Metric};
use carma_gpu::ProcessActivity;

use crate::measure::UsageSample;

/// A GPU below this SM activity does nothing. A resident process without kernels reads zero.
const IDLE_SMACT: f64 = 0.005;

/// The size and the last change of the logs of an attempt: output and errors.
pub(crate) type OutputMark = [Option<(u64, SystemTime)>; 2];

/// What a check shows about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Signs {
    pub(crate) gpu: GpuSign,
    pub(crate) output: OutputMark,
    pub(crate) progress: Option<Fraction>,
    /// When its checkpoint folder last changed.
    pub(crate) checkpoint: Option<SystemTime>,
}

/// What the GPUs of an attempt do for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum GpuSign {
    /// It has no GPUs.
    None,
    /// At least one works for it.
    Works,
    /// None works for it.
    Idle,
    /// A GPU could not be read, or is active for an unknown process.
    #[default]
    Unknown,
}

impl GpuSign {
    /// Combines the GPUs of an attempt.
    pub(crate) fn of_all(signs: impl IntoIterator<Item = Self>) -> Self {
        signs.into_iter().fold(Self::None, |all, sign| match (all, sign) {
            (Self::Works, _) | (_, Self::Works) => Self::Works,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Idle, _) | (_, Self::Idle) => Self::Idle,
            (Self::None, Self::None) => Self::None,
        })
    }
}

/// What a GPU does for an attempt on it. `activity` is that of its processes, if it was asked for and is complete; `tenants` counts the attempts there.
pub(crate) fn gpu_sign(attempt: AttemptId, usage: &UsageSample, activity: Option<&ProcessActivity>, tenants: usize) -> GpuSign {
    let level = |metric| usage.utilisation[metric].map(Fraction::get);
    let busiest = [level(Metric::Smact), level(Metric::Utilisation)].into_iter().flatten().reduce(f64::max);
    let own = usage.occupant(attempt);
    match (busiest, activity, own.and_then(|own| own.busy)) {
        (Some(level), ..) if level < IDLE_SMACT => GpuSign::Idle,
        (_, Some(ProcessActivity::Known(_)), Some(busy)) if busy > Fraction::ZERO => GpuSign::Works,
        // All of the activity is attributed, to others.
        (_, Some(ProcessActivity::Known(_)), _) => GpuSign::Idle,
        (Some(_), ..) if tenants == 1 && usage.occupants.len() == 1 && own.is_some() => GpuSign::Works,
        _ => GpuSign::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use carma_core::{JobId, MiB, Time, Utilisation};

    use super::*;
    use crate::measure::{GpuConsumer, Holder};

    const ATTEMPT: AttemptId = AttemptId { job: JobId(1), number: 1 };
    const OTHER: AttemptId = AttemptId { job: JobId(2), number: 1 };

    /// A GPU at this level with these attempts, each with its activity.
    fn sign(level: Option<f64>, occupants: &[(AttemptId, Option<f64>)], known: bool) -> GpuSign {
        let fraction = |value: Option<f64>| value.map(Fraction::clamped);
        let occupant = |(attempt, busy): &(AttemptId, Option<f64>)| GpuConsumer {
            holder: Holder::Attempt(*attempt),
            memory: None,
            busy: fraction(*busy),
        };
        let usage = UsageSample {
            at: Time::ZERO,
            memory_used: MiB(1),
            energy: None,
            power: None,
            utilisation: Utilisation::NONE.with(Metric::Utilisation, fraction(level)),
            occupants: occupants.iter().map(occupant).collect(),
        };
        let activity = if known { ProcessActivity::Known(BTreeMap::new().into_iter().collect()) } else { ProcessActivity::Unknown };
        gpu_sign(ATTEMPT, &usage, Some(&activity), occupants.len())
    }

    #[test]
    fn an_idle_gpu_shows_no_activity_and_a_busy_one_that_of_its_only_attempt() {
        assert_eq!(sign(Some(0.0), &[(ATTEMPT, None), (OTHER, None)], false), GpuSign::Idle);
        assert_eq!(sign(Some(0.4), &[(ATTEMPT, None)], false), GpuSign::Works);
    }

    #[test]
    fn on_a_shared_gpu_the_activity_of_processes_decides() {
        let both = |ours, other| [(ATTEMPT, ours), (OTHER, other)];
        assert_eq!(sign(Some(0.4), &both(None, None), false), GpuSign::Unknown, "it is not known who works");
        assert_eq!(sign(Some(0.4), &both(Some(0.2), Some(0.2)), true), GpuSign::Works);
        assert_eq!(sign(Some(0.4), &both(Some(0.0), Some(0.4)), true), GpuSign::Idle);
        assert_eq!(sign(Some(0.4), &both(None, Some(0.4)), true), GpuSign::Idle);
        assert_eq!(sign(None, &both(None, None), false), GpuSign::Unknown, "as of MIG instances without counters");
        assert_eq!(sign(Some(0.4), &[(OTHER, None)], false), GpuSign::Unknown, "its processes cannot be seen");
    }

    #[test]
    fn one_active_or_unknown_gpu_is_sufficient() {
        use GpuSign::{Idle, None, Unknown, Works};
        assert_eq!([GpuSign::of_all([]), GpuSign::of_all([Idle, Idle])], [None, Idle]);
        assert_eq!([GpuSign::of_all([Idle, Unknown]), GpuSign::of_all([Unknown, Works])], [Unknown, Works]);
    }
}
