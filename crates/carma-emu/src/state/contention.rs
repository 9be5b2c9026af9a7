//! What processes on a GPU do to each other, by the simulator's models: speeds, counters, power.

use std::sync::LazyLock;

use carma_core::{CollocationMode, Fraction, MiB};
use carma_sim::{InterferenceModel, Levels, Neighbours, Physics, RankProfile, device_power};

use super::records::{ContextKind, ContextRecord};
use super::{Place, State};

static MODEL: LazyLock<InterferenceModel> = LazyLock::new(InterferenceModel::shipped);
static PHYSICS: LazyLock<Physics> = LazyLock::new(Physics::default);

impl ContextRecord {
    fn profile(&self) -> RankProfile {
        let [smact, smocc, drama, utilisation] = self.counters.map(Fraction::clamped);
        RankProfile { peak: MiB(self.bytes >> 20), smact, smocc, drama, utilisation, power: None }
    }

    const fn is_busy(&self) -> bool {
        self.busy != 0 && self.fault == 0 && self.halted == 0
    }
}

impl State<'_> {
    /// Works out what follows from a change, if there was one.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.header.changed) == 0 {
            return;
        }
        let busy = self.contexts().iter().filter(|context| context.is_busy()).count();
        self.header.host = PHYSICS.host_slowdown(busy, self.gpus.len().max(1) as f64);
        let slowdowns: Vec<f64> = (0..self.contexts().len()).map(|place| self.slowdown(place)).collect();
        for place in 0..slowdowns.len() {
            let context = self.table[place];
            // A job is as fast as its slowest rank, and all its ranks are as busy as that allows.
            let ranks = self.contexts().iter().zip(&slowdowns).filter(|(other, _)| other.pid == context.pid && other.is_busy());
            let slowest = ranks.map(|(_, slowdown)| *slowdown).fold(f64::MIN_POSITIVE, f64::max);
            let lost = self.gpus[context.gpu as usize].lost != 0;
            let (speed, activity) =
                if context.is_busy() && !lost { (1.0 / slowest, context.stretch / slowest) } else { (0.0, PHYSICS.quiet) };
            let context = &mut self.table[place];
            (context.speed, context.activity) = (speed, activity);
        }
        for gpu in 0..self.gpus.len() {
            self.measure(gpu);
        }
    }

    /// How much longer a process's steps take than in the catalogue.
    fn slowdown(&self, place: usize) -> f64 {
        let me = &self.contexts()[place];
        let mut neighbours = Neighbours::default();
        let mut mode = CollocationMode::Streams;
        for (other, context) in self.contexts().iter().enumerate() {
            if (context.gpu, context.instance) == (me.gpu, me.instance) {
                if context.kind() == ContextKind::MpsClient {
                    mode = CollocationMode::Mps { exclusive_process: false };
                }
                if other != place && context.is_busy() {
                    neighbours.add(context.pressure);
                }
            }
        }
        MODEL.slowdown(me.sensitivity, neighbours, mode) * me.stretch * self.header.host
    }

    /// Counters and power of a GPU and its instances from now on.
    fn measure(&mut self, gpu: usize) {
        let profile = self.profile(gpu);
        let kind = profile.kind;
        let lost = self.gpus[gpu].lost != 0;
        let all: Vec<ContextRecord> = self.contexts_at(Place::gpu(gpu)).copied().collect();
        let levels = |of: &mut dyn Iterator<Item = &ContextRecord>| {
            let ranks: Vec<(RankProfile, f64)> = of.map(|context| (context.profile(), context.activity)).collect();
            Levels::of(ranks.iter().map(|(profile, activity)| (profile, *activity)), PHYSICS.reading).0
        };
        let watts = |of: &mut dyn Iterator<Item = &ContextRecord>| device_power(kind, of.map(|context| (context.watts, context.activity)));
        let record = &mut self.gpus[gpu];
        let mut whole = [0.0; 4];
        for (place, instance) in record.instances.iter_mut().enumerate().filter(|(_, instance)| instance.used != 0) {
            let share = profile.mig.get(instance.profile as usize).map_or(0.0, |instance| profile.share(instance).get());
            let mine = || all.iter().filter(|context| context.instance as usize == place);
            instance.engine.levels = if lost { [0.0; 4] } else { levels(&mut mine()) };
            instance.engine.watts = if lost { 0.0 } else { (watts(&mut mine()) - kind.idle_watts) + kind.idle_watts * share };
            whole.iter_mut().zip(instance.engine.levels).for_each(|(sum, level)| *sum += level * share);
        }
        let of_gpu = if record.mig == 0 { levels(&mut all.iter()) } else { whole };
        (record.engine.levels, record.engine.watts) = if lost { ([0.0; 4], 0.0) } else { (of_gpu, watts(&mut all.iter())) };
        let limit = f64::from(record.power_limit) / 1000.0;
        record.engine.watts = record.engine.watts.min(limit);
    }
}
