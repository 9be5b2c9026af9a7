//! The observations of a host engine on each device.

use carma_core::Metric;
use carma_gpu::profiling::dcgmi::Entity;
use carma_gpu::profiling::fields::Field;
use carma_sim::Levels;

use crate::profile::Profiling;
use crate::readings::percent;
use crate::state::{Engine, INSTANCES, Place, State};

/// One observation of one device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) entity: Entity,
    /// The device; a compute instance spans its GPU instance.
    pub(super) place: Place,
    /// When, in emulated seconds.
    at: f64,
    engine: Engine,
    used_mebibytes: u64,
    lost: bool,
    /// Whether it has profiling counters.
    profiling: bool,
}

/// Observes all GPUs, their instances, and their compute instances.
pub(super) fn observe(state: &State<'_>) -> Vec<Observation> {
    let mut seen = Vec::new();
    for (gpu, record) in state.gpus.iter().enumerate() {
        let observation = |entity: fn(u32) -> Entity, number: usize, place: Place| Observation {
            entity: entity(number as u32),
            place,
            at: state.header.now,
            engine: *state.engine(place),
            used_mebibytes: state.memory(place).used >> 20,
            lost: record.lost != 0,
            profiling: state.profile(gpu).facts.profiling != Profiling::None,
        };
        seen.push(observation(Entity::Gpu, gpu, Place::gpu(gpu)));
        for (instance, there) in record.instances.iter().enumerate().filter(|(_, there)| there.used != 0) {
            let (number, place) = (instance_number(gpu, instance), Place { gpu, instance: Some(instance) });
            seen.push(observation(Entity::Instance, number, place));
            if there.computes != 0 {
                seen.push(observation(Entity::ComputeInstance, number, place));
            }
        }
    }
    seen
}

/// DCGM's number of an instance: it counts them over all GPUs.
pub(super) const fn instance_number(gpu: usize, instance: usize) -> usize {
    gpu * INSTANCES + instance
}

impl Observation {
    /// A field's value. Profiling counters are means since an earlier observation; values that no model gives are absent.
    pub(super) fn value(&self, field: &Field, before: Option<&Self>) -> Option<f64> {
        if self.lost {
            return None;
        }
        let whole = self.place.instance.is_none();
        let [_, _, drama, utilisation] = self.engine.levels;
        match field.id {
            155 => whole.then_some(self.engine.watts),
            156 => whole.then_some(self.engine.joules * 1000.0),
            203 => whole.then(|| percent(utilisation).into()),
            204 => whole.then(|| percent(drama).into()),
            252 => Some(self.used_mebibytes as f64),
            // While a kernel runs, the engine is active.
            1001 => self.mean(Metric::Utilisation, before),
            _ => self.mean(field.counter.as_ref()?.metric?, before),
        }
    }

    /// The mean of a metric since an earlier observation; unset if no model gives it.
    fn mean(&self, metric: Metric, before: Option<&Self>) -> Option<f64> {
        let level = Levels::place(metric)?;
        let before = before.filter(|before| self.profiling && before.at < self.at)?;
        let gained = self.engine.level_seconds[level] - before.engine.level_seconds[level];
        // Less than before: an instance that was destroyed and made again.
        (gained >= 0.0).then(|| (gained / (self.at - before.at)).min(1.0))
    }
}
