//! The activity of each attempt on a GPU, where the driver reports it for processes.

use std::time::Duration;

use carma_core::{AttemptId, DeviceId, Event, Fraction, Seconds};
use carma_gpu::{ProcessActivity, Reading};

use super::Gpus;
use crate::engine::decide::Decisions;
use crate::measure::UsageSample;

/// The longest period.
const MAX_PERIOD: Seconds = Seconds::from_secs(10);
/// Queries of the driver before an idle job is due.
const QUERIES: f64 = 10.0;

impl Gpus {
    /// How often the driver is asked for the activity of processes; unset while neither the rules nor a quiet attempt need it.
    pub(crate) fn activity_period(&self, decisions: &Decisions) -> Option<Duration> {
        let rules = decisions.scheduler().config().idle_jobs;
        let suspects = self.suspects.then_some(MAX_PERIOD.times(QUERIES));
        let soonest = rules.flag_after.into_iter().chain(rules.lend_after).chain(suspects).min()?;
        Some(decisions.clock.real(soonest.times(1.0 / QUERIES).min(MAX_PERIOD)))
    }

    /// Notes whether attempts are quiet on GPUs where others work. True if that is new.
    pub(crate) fn set_suspects(&mut self, suspects: bool) -> bool {
        std::mem::replace(&mut self.suspects, suspects) != suspects
    }
}

/// The activity of the attempts on a device. An attempt without processes there is inactive. If the driver does not report it, earlier values expire.
pub(crate) fn activity_seen(decisions: &Decisions, device: DeviceId, activity: &ProcessActivity, usage: &UsageSample) -> Event {
    let tenants = decisions.scheduler().fleet().device(device).map_or(&[][..], |device| &device.tenants);
    let does = |attempt: AttemptId| usage.occupant(attempt).map_or(Some(Fraction::ZERO), |occupant| occupant.busy);
    let reported = tenants.iter().filter(|_| *activity != ProcessActivity::Unknown);
    let attempts = reported.filter_map(|tenant| Some((tenant.attempt, does(tenant.attempt)?))).collect();
    Event::ActivitySeen { device, attempts }
}

/// The activity, unless it is incomplete: work of an MPS server may belong to any of its clients, and unattributed work to any process.
pub(crate) fn complete<'a>(activity: &'a ProcessActivity, reading: &Reading, mps_server: Option<u32>) -> &'a ProcessActivity {
    let ProcessActivity::Known(processes) = activity else { return activity };
    let works = |pid: u32| processes.get(&pid).is_some_and(|does| *does > Fraction::ZERO);
    let is_anybodys = reading.utilisation.is_none_or(|all| all == Fraction::ZERO) || reading.processes.iter().any(|known| works(known.pid));
    if mps_server.is_some_and(works) || !is_anybodys { &ProcessActivity::Unknown } else { activity }
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;
    use carma_gpu::{GpuProcess, ProcessKind};

    use super::*;

    #[test]
    fn partial_activity_is_not_reported() {
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
            throttling: std::collections::BTreeSet::new(),
            processes: vec![process(1), process(2)],
        };
        let activity =
            |all: &[(u32, f64)]| ProcessActivity::Known(all.iter().map(|(pid, does)| (*pid, Fraction::clamped(*does))).collect());
        let counts =
            |all: &[(u32, f64)], utilisation, server| *complete(&activity(all), &reading(utilisation), server) != ProcessActivity::Unknown;
        assert!(counts(&[(1, 0.5)], Some(0.5), None) && counts(&[(1, 0.5)], Some(0.5), Some(2)));
        assert!(!counts(&[(2, 0.5)], Some(0.5), Some(2)), "it is unknown which client of the server works");
        assert!(counts(&[], Some(0.0), None) && counts(&[], None, None) && !counts(&[], Some(0.5), None));
        assert!(!counts(&[(3, 0.5)], Some(0.5), None), "who works is not listed");
    }
}
