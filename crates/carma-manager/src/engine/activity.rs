//! What each of our attempts does on a GPU, where the driver tells it of processes.

use std::time::Duration;

use carma_core::{AttemptId, DeviceId, Event, Fraction, Seconds};
use carma_gpu::{ProcessActivity, Reading};

use super::run::Running;
use crate::measure::Look;

/// The longest between two questions.
const LONGEST: Seconds = Seconds::from_secs(10);
/// How often it is asked at least before an idle holder is due.
const QUESTIONS: f64 = 10.0;

impl Running {
    /// How often the driver is asked what each process does; unset while nobody wants to know.
    pub(super) fn activity_period(&self) -> Option<Duration> {
        let rules = self.core.scheduler().config().idle_holders;
        let soonest = rules.flag_after.into_iter().chain(rules.lend_after).min()?;
        Some(self.real(soonest.times(1.0 / QUESTIONS).min(LONGEST)))
    }

    /// What those on a device do. Who is no longer on it does nothing; of whom nothing is told, what was told before no longer counts.
    pub(super) fn activity_seen(&self, device: DeviceId, activity: &ProcessActivity, look: &Look) -> Event {
        let tenants = self.core.scheduler().fleet().device(device).map_or(&[][..], |device| &device.tenants);
        let does = |attempt: AttemptId| look.presence(attempt).map_or(Some(Fraction::ZERO), |presence| presence.busy);
        let told = tenants.iter().filter(|_| *activity != ProcessActivity::Untold);
        let attempts = told.filter_map(|tenant| Some((tenant.attempt, does(tenant.attempt)?))).collect();
        Event::ActivitySeen { device, attempts }
    }
}

/// What is told, unless it cannot be all: work that is an MPS server's may be any of its clients', and work that is nobody's somebody's.
pub(super) fn complete<'a>(activity: &'a ProcessActivity, reading: &Reading, mps_server: Option<u32>) -> &'a ProcessActivity {
    let ProcessActivity::Told(processes) = activity else { return activity };
    let works = |pid: u32| processes.get(&pid).is_some_and(|does| *does > Fraction::ZERO);
    let is_anybodys = reading.utilisation.is_none_or(|all| all == Fraction::ZERO) || reading.processes.iter().any(|known| works(known.pid));
    if mps_server.is_some_and(works) || !is_anybodys { &ProcessActivity::Untold } else { activity }
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;
    use carma_gpu::{GpuProcess, ProcessKind};

    use super::*;

    #[test]
    fn what_cannot_be_all_is_not_told() {
        let process = |pid| GpuProcess { pid, kind: ProcessKind::Compute, memory: None, gpu_instance: None };
        let reading = |utilisation: Option<f64>| Reading {
            memory_used: MiB(1),
            memory_total: MiB(2),
            utilisation: utilisation.map(Fraction::clamped),
            power: None,
            energy: None,
            temperature: None,
            clock: None,
            uncorrected: None,
            processes: vec![process(1), process(2)],
        };
        let told = |all: &[(u32, f64)]| ProcessActivity::Told(all.iter().map(|(pid, does)| (*pid, Fraction::clamped(*does))).collect());
        let counts =
            |all: &[(u32, f64)], utilisation, server| *complete(&told(all), &reading(utilisation), server) != ProcessActivity::Untold;
        assert!(counts(&[(1, 0.5)], Some(0.5), None) && counts(&[(1, 0.5)], Some(0.5), Some(2)));
        assert!(!counts(&[(2, 0.5)], Some(0.5), Some(2)), "which of the server's clients works nobody knows");
        assert!(counts(&[], Some(0.0), None) && counts(&[], None, None) && !counts(&[], Some(0.5), None));
        assert!(!counts(&[(3, 0.5)], Some(0.5), None), "who works is not listed");
    }
}
