//! Interference of processes on a GPU, by the simulator's models: speeds, counters, power.

use std::collections::HashMap;
use std::sync::LazyLock;

use carma_core::{CollocationMode, Fraction, MiB};
use carma_sim::{InterferenceModel, Levels, Neighbours, Physics, RankProfile, capped_speed, device_power};

use super::records::{ContextKind, ContextRecord};
use super::{Place, State};

/// The speed and the clock of a GPU that is throttled by a fault, as a part of its usual ones: made up.
pub(crate) const THROTTLED: f64 = 0.5;
/// The interference model.
pub(crate) static MODEL: LazyLock<InterferenceModel> = LazyLock::new(InterferenceModel::shipped);
pub(crate) static PHYSICS: LazyLock<Physics> = LazyLock::new(Physics::default);

impl ContextRecord {
    fn profile(&self) -> RankProfile {
        let [smact, smocc, drama, utilisation] = self.counters.map(Fraction::clamped);
        RankProfile { peak: MiB(self.bytes >> 20), smact, smocc, drama, utilisation, power: None }
    }

    /// Whether it can run.
    const fn runs(&self) -> bool {
        self.fault == 0 && self.halted == 0
    }

    const fn is_busy(&self) -> bool {
        self.busy != 0 && self.runs()
    }
}

impl State<'_> {
    /// Recalculates after a change.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.header.changed) == 0 {
            return;
        }
        let busy = self.contexts().iter().filter(|context| context.is_busy()).count();
        self.header.host = PHYSICS.host_slowdown(busy, self.gpus.len().max(1) as f64);
        let mut slowdowns = self.slowdowns();
        self.throttle(&mut slowdowns);
        // A job is as fast as its slowest rank, and all its ranks are as busy as that allows.
        let mut slowest: HashMap<u32, f64> = HashMap::new();
        for (context, slowdown) in self.contexts().iter().zip(&slowdowns).filter(|(context, _)| context.is_busy()) {
            let slowest = slowest.entry(context.pid).or_insert(f64::MIN_POSITIVE);
            *slowest = slowest.max(*slowdown);
        }
        let contexts = self.header.contexts as usize;
        for context in &mut self.table[..contexts] {
            let runs = context.runs() && self.gpus[context.gpu as usize].lost == 0;
            (context.speed, context.activity) = match slowest.get(&context.pid).filter(|_| context.is_busy()) {
                _ if !runs => (0.0, 0.0),
                Some(slowest) => (1.0 / slowest, context.stretch / slowest),
                None => (0.0, PHYSICS.quiet),
            };
        }
        for gpu in 0..self.gpus.len() {
            self.measure(gpu);
        }
    }

    /// The slowdown of each process's steps against the catalogue.
    fn slowdowns(&self) -> Vec<f64> {
        // Only processes at one place slow each other down.
        let mut places: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
        for (number, context) in self.contexts().iter().enumerate() {
            places.entry((context.gpu, context.instance)).or_default().push(number);
        }
        let mut slowdowns = vec![1.0; self.contexts().len()];
        for numbers in places.values() {
            let here = || numbers.iter().map(|number| (*number, &self.contexts()[*number]));
            let mps = here().any(|(_, context)| context.kind() == ContextKind::MpsClient);
            let mode = if mps { CollocationMode::Mps { exclusive_process: false } } else { CollocationMode::Streams };
            for (number, me) in here().filter(|(_, context)| context.is_busy()) {
                let mut neighbours = Neighbours::default();
                let others = here().filter(|(other, context)| *other != number && context.is_busy());
                others.for_each(|(_, context)| neighbours.add(context.pressure));
                slowdowns[number] = MODEL.slowdown(me.sensitivity, neighbours, mode) * me.stretch * self.header.host;
            }
        }
        slowdowns
    }

    /// Slows down all processes on a GPU that would exceed its power limit, or has a fault that throttles it.
    fn throttle(&self, slowdowns: &mut [f64]) {
        let mut draws: Vec<Vec<(f64, f64)>> = vec![Vec::new(); self.gpus.len()];
        for (context, slowdown) in self.contexts().iter().zip(&*slowdowns).filter(|(context, _)| context.runs()) {
            // As in the simulator, the speed depends on the share that neighbours leave to each process.
            let speed = if context.is_busy() { context.stretch * self.header.host / slowdown } else { PHYSICS.quiet };
            draws[context.gpu as usize].push((context.watts, speed));
        }
        let speed = |(gpu, draws): (usize, &Vec<(f64, f64)>)| {
            let (kind, limit) = (self.profile(gpu).kind, self.power_limit(gpu));
            let fault = if self.gpus[gpu].throttle == 0 { 1.0 } else { THROTTLED };
            capped_speed(kind, device_power(kind, draws.iter().copied()), limit) * fault
        };
        let speeds: Vec<f64> = draws.iter().enumerate().map(speed).collect();
        slowdowns.iter_mut().zip(self.contexts()).for_each(|(slowdown, context)| *slowdown /= speeds[context.gpu as usize]);
    }

    /// The power limit of a GPU in watts, at least its idle power.
    fn power_limit(&self, gpu: usize) -> f64 {
        (f64::from(self.gpus[gpu].power_limit) / 1000.0).max(self.profile(gpu).kind.idle_watts)
    }

    /// Counters and power of a GPU and its instances from now on.
    fn measure(&mut self, gpu: usize) {
        let profile = self.profile(gpu);
        let kind = profile.kind;
        let (lost, limit) = (self.gpus[gpu].lost != 0, self.power_limit(gpu));
        let all: Vec<ContextRecord> = self.contexts_at(Place::gpu(gpu)).copied().collect();
        let levels = |of: &mut dyn Iterator<Item = &ContextRecord>| {
            let ranks: Vec<(RankProfile, f64)> = of.map(|context| (context.profile(), context.activity)).collect();
            // They are kept as monitors read them.
            Levels::of(ranks.iter().map(|(profile, activity)| (profile, *activity)), 1.0).0
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
        (record.engine.levels, record.engine.watts) = if lost { ([0.0; 4], 0.0) } else { (of_gpu, watts(&mut all.iter()).min(limit)) };
    }
}
