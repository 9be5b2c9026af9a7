//! The sampler, and the last sample of each GPU.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use carma_core::DeviceId;
use carma_gpu::mps::MpsControl;
use carma_gpu::profiling::Options;
use carma_gpu::{Monitor, Observation};

use super::Gpus;
use super::report::{GpuChange, Reports};
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
}

impl Sampling {
    /// The last sample of a device.
    pub(crate) fn latest(&self, device: DeviceId) -> Option<&GpuSample> {
        self.latest.get(&device)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &GpuSample> {
        self.latest.values()
    }

    pub(super) fn forget(&mut self, device: DeviceId) {
        self.latest.remove(&device);
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
        let setup = SamplerSetup { driver, clock, period, profiling, controls };
        self.sampling.sampler = Some(Sampler::start(setup, self.devices.clone(), report_to(self.reports.clone()))?);
        self.rules_changed(decisions);
        Ok(())
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
