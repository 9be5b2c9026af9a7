//! The sampler, and the last sample of each GPU.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use carma_core::{DeviceId, Seconds, Time};
use carma_gpu::mps::MpsControl;
use carma_gpu::profiling::Options;
use carma_gpu::{Condition, DriverError, Incident, Monitor, Observation};

use super::report::{GpuChange, Reports};
use super::{Gpus, is_lost};
use crate::engine::decide::Decisions;
use crate::host_gpus::{GpuSample, Sampled, Sampler, SamplerSetup};
use crate::measure::Millijoules;

/// The shortest period of any source of counters.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// The threads that sample, and the last sample of each device.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    sampler: Option<Sampler>,
    latest: BTreeMap<DeviceId, GpuSample>,
    /// When each device last answered.
    answered: BTreeMap<DeviceId, Time>,
    /// What was reported of each device.
    told: BTreeMap<DeviceId, Condition>,
}

/// A device whose driver calls fail or hang.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence<'a> {
    /// Time since its last answer.
    pub(crate) lasted: Seconds,
    pub(crate) error: &'a DriverError,
}

impl Sampling {
    /// The last sample of a device.
    pub(crate) fn latest(&self, device: DeviceId) -> Option<&GpuSample> {
        self.latest.get(&device)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &GpuSample> {
        self.latest.values()
    }

    /// Time since a device last answered; none if it never has.
    pub(crate) fn age(&self, device: DeviceId, now: Time) -> Option<Seconds> {
        self.answered.get(&device).map(|answered| now - *answered)
    }

    /// Since when a device has not answered, if its last sample failed.
    pub(crate) fn silence(&self, device: DeviceId, now: Time) -> Option<Silence<'_>> {
        let error = self.latest(device)?.reading.as_ref().err()?;
        Some(Silence { lasted: self.age(device, now).unwrap_or_default(), error })
    }

    /// Whether a device was reported to hang before. A sampler that was restarted meanwhile may report it again.
    pub(super) fn hangs_again(&mut self, device: DeviceId, incident: Incident) -> bool {
        let condition = match incident {
            Incident::Back => Condition::Answering,
            Incident::Hanging => Condition::Hanging,
            Incident::Lost => Condition::Lost,
            _ => return false,
        };
        self.told.insert(device, condition) == Some(Condition::Hanging) && condition == Condition::Hanging
    }

    pub(super) fn forget(&mut self, device: DeviceId) {
        self.latest.remove(&device);
        self.answered.remove(&device);
        self.told.remove(&device);
    }
}

impl Gpus {
    /// Starts sampling, or restarts it with the present devices.
    pub(crate) fn start_sampling(&mut self, decisions: &Decisions) -> io::Result<()> {
        let Some(driver) = self.setup.driver.clone() else { return Ok(()) };
        let clock = decisions.clock;
        let period = clock.real(self.setup.settings.period);
        let controls: HashMap<DeviceId, MpsControl> =
            self.devices.iter().filter_map(|device| Some((device.id, self.mps_control(device.id)?))).collect();
        let profiling = Options { interval: period.max(MIN_PERIOD), ..self.setup.profiling.clone() };
        let conditions = self.devices.iter().map(|device| (device.uuid.clone(), self.condition(decisions, device.id))).collect();
        let setup = SamplerSetup { driver, clock, period, profiling, controls, conditions };
        self.sampling.sampler = Some(Sampler::start(setup, self.devices.clone(), report_to(self.reports.clone()))?);
        self.rules_changed(decisions);
        Ok(())
    }

    /// What listeners were told of a device.
    fn condition(&self, decisions: &Decisions, device: DeviceId) -> Condition {
        if is_lost(decisions, device) {
            return Condition::Lost;
        }
        self.sampling.told.get(&device).copied().filter(|condition| *condition != Condition::Lost).unwrap_or(Condition::Answering)
    }

    /// The energy counters of the GPUs of this host, read now. Unset where a GPU has none or does not answer.
    pub(crate) fn energy_counters(&self) -> Vec<(DeviceId, Option<Millijoules>)> {
        let Some(driver) = &self.setup.driver else { return Vec::new() };
        let (observations, _) = Monitor::default().sample(driver, &self.devices.uuids());
        let counter = |observation: Observation| {
            let energy = observation.reading.ok().and_then(|reading| reading.energy);
            Some((self.devices.by_uuid(&observation.device)?.id, energy.map(Millijoules::from_joules)))
        };
        observations.into_iter().filter_map(counter).collect()
    }

    /// Samples what the rules need now.
    pub(crate) fn rules_changed(&self, decisions: &Decisions) {
        self.sampling.sampler.as_ref().inspect(|sampler| sampler.ask_activity(self.activity_period(decisions)));
    }

    /// Samples all devices now: something has changed on them.
    pub(crate) fn sample_now(&self) {
        self.sampling.sampler.as_ref().inspect(|sampler| sampler.now());
    }

    /// Keeps a sample as the last one of its device.
    pub(crate) fn keep_sample(&mut self, sample: GpuSample) {
        if sample.reading.is_ok() {
            self.sampling.answered.insert(sample.device, sample.at);
        }
        self.sampling.latest.insert(sample.device, sample);
    }
}

/// Passes what the sampler sees to the engine.
fn report_to(reports: Reports) -> impl Fn(Sampled) -> bool + Send + Sync {
    move |sampled| match sampled {
        Sampled::Samples(samples) => reports.sampled(samples),
        Sampled::Event(event) => reports.changed(GpuChange::Event(event)),
        Sampled::MpsDied(device, died) => reports.changed(GpuChange::MpsDied(device, died)),
    }
}
