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
