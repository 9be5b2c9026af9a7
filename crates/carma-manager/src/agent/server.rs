//! The server that an agent runs on: its GPUs and its host.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use carma_core::{AttemptId, Time};
use carma_gpu::profiling::Options;
use carma_gpu::{ProcessActivity, topology};

use super::run::AgentInput;
use super::{AgentError, AgentSetup};
use crate::clock::Clock;
use crate::cluster::ServerFacts;
use crate::configuration::GpuConfig;
use crate::executor::Executor;
use crate::host::HostWatch;
use crate::host_gpus::{Devices, GpuSample, Numbers, Sampled, Sampler, SamplerSetup};
use crate::link::WireSample;

/// The shortest period of any source of counters.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// The GPUs of the server.
#[derive(Debug)]
pub(super) struct ServerGpus {
    devices: Devices,
    sampler: Option<Sampler>,
}

impl ServerGpus {
    /// Lists the GPUs that this process may use.
    pub(super) fn find(setup: &AgentSetup) -> Result<(Self, ServerFacts), AgentError> {
        let mut devices = Devices::default();
        if let Some(driver) = &setup.driver {
            let (found, excluded) = Devices::find(driver, &GpuConfig::default(), &mut Numbers::default())?;
            excluded.log();
            devices = found;
        }
        let links = setup.driver.as_ref().and_then(|driver| topology(driver, &devices.gpus()).ok());
        let host = HostWatch::new(Vec::new()).read().ok();
        let facts = ServerFacts {
            devices: devices.iter().cloned().collect(),
            topology: links,
            cores: host.as_ref().map(|host| host.cores),
            host_memory: host.as_ref().map(|host| host.memory_total),
        };
        Ok((Self { devices, sampler: None }, facts))
    }

    /// Samples with this period, in the time of the GPUs.
    pub(super) fn start_sampling(
        &mut self,
        setup: &AgentSetup,
        period: Duration,
        inbox: std::sync::mpsc::Sender<AgentInput>,
    ) -> std::io::Result<()> {
        let Some(driver) = &setup.driver else { return Ok(()) };
        let period = period.div_f64(setup.world.speed);
        let sampling = SamplerSetup {
            driver: Arc::clone(driver),
            clock: Clock::from(Time::ZERO, setup.world.speed),
            period,
            profiling: Options { interval: period.max(MIN_PERIOD), ..setup.world.profiling.clone() },
            controls: HashMap::new(),
            conditions: HashMap::new(),
        };
        let take = move |sampled: Sampled| inbox.send(AgentInput::Sampled(sampled)).is_ok();
        self.sampler = Some(Sampler::start(sampling, self.devices.clone(), take)?);
        Ok(())
    }

    pub(super) fn sample_now(&self) {
        self.sampler.as_ref().inspect(|sampler| sampler.now());
    }

    pub(super) fn ask_activity(&self, every: Option<Duration>) {
        self.sampler.as_ref().inspect(|sampler| sampler.ask_activity(every));
    }

    /// A sample for the manager, with the owners of the processes.
    pub(super) fn wire(&self, sample: GpuSample, executor: &impl Executor) -> Option<WireSample> {
        let pids: Vec<u32> = sample.reading.iter().flat_map(|reading| &reading.processes).map(|process| process.pid).collect();
        let owners = if pids.is_empty() { Vec::new() } else { executor.owners(&pids).into_iter().collect() };
        self.wire_with(sample, owners)
    }

    /// The same with owners that are known.
    pub(super) fn wire_with(&self, sample: GpuSample, owners: Vec<(u32, AttemptId)>) -> Option<WireSample> {
        let device = self.devices.get(sample.device)?.uuid.clone();
        Some(WireSample {
            device,
            reading: sample.reading.map_err(|error| error.to_string()),
            counters: sample.counters,
            activity_unknown: sample.activity == Some(ProcessActivity::Unknown),
            activity: match sample.activity {
                Some(ProcessActivity::Known(activity)) => Some(activity),
                _ => None,
            },
            source: sample.source,
            owners,
        })
    }
}
