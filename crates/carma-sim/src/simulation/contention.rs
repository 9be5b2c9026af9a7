//! Contention between processes: speeds, counters and power after a change, and what the monitor reports.

use carma_core::{Event, Fraction, Owner, ProcessUse, Statistics};

use super::agenda::Item;
use super::chance::{Chance, Purpose};
use super::driver::{Decider, SimulationError};
use super::gpu::{DeviceProcess, ProcessRef};
use super::process::Phase;
use super::world::World;

impl<D: Decider> World<'_, D> {
    /// The processes on a GPU have changed: updates speeds, counters and power, on the whole server if its host is oversubscribed.
    pub(super) fn load_changed(&mut self, gpu: usize) {
        let Self { setup, gpus, processes, tasks, .. } = self;
        let deviation = setup.interference.pair_deviation;
        let workload = |process_ref: ProcessRef| match process_ref {
            ProcessRef::Rank { process, .. } => processes[process].as_ref().map_or(0, |process| tasks[process.job].workload.0 as u64 + 1),
            ProcessRef::Foreign(_) => 0,
        };
        gpus[gpu].contend(setup.interference, |me, other| {
            if deviation > 0.0 {
                (deviation * Chance::new(setup.seed, Purpose::Pair, workload(me), workload(other)).normal()).exp()
            } else {
                1.0
            }
        });
        gpus[gpu].throttle(setup.physics.quiet);
        let server = &self.servers[gpus[gpu].id.server().0 as usize];
        let busy: usize = server.devices.iter().map(|place| gpus[*place].busy()).sum();
        let host = setup.physics.host_slowdown(busy, server.gpus);
        let server = gpus[gpu].id.server().0 as usize;
        if host.to_bits() == gpus[gpu].host.to_bits() {
            self.adjust_all(gpu, host);
        } else {
            for nth in 0..self.servers[server].devices.len() {
                self.adjust_all(self.servers[server].devices[nth], host);
            }
        }
        self.report(gpu);
    }

    /// Updates all processes on a GPU.
    fn adjust_all(&mut self, gpu: usize, host: f64) {
        self.gpus[gpu].host = host;
        for resident in 0..self.gpus[gpu].residents.len() {
            if let ProcessRef::Rank { process, .. } = self.gpus[gpu].residents[resident].process_ref {
                self.adjust(process);
            }
        }
        self.measure(gpu);
    }

    /// A job is as fast as its slowest rank; the activity of all its ranks follows.
    fn adjust(&mut self, place: usize) {
        let Self { gpus, processes, .. } = self;
        let Some(process) = &mut processes[place] else { return };
        let training = process.phase == Phase::Training;
        let slowdown = |(rank, gpu): (usize, &usize)| {
            gpus[*gpu].rank(place, rank).map_or(1.0, |rank| rank.slowdown * rank.facts.stretch * gpus[*gpu].host * gpus[*gpu].throttling)
        };
        let slowest = process.gpus.iter().enumerate().map(slowdown).fold(0.0, f64::max);
        if !process.set_speed(if training { 1.0 / slowest } else { 0.0 }, self.now) {
            return;
        }
        if let Some(end) = process.trained_at() {
            self.plans += 1;
            process.end_plan = self.plans;
            self.agenda.plan(end, Item::WindDown { process: place, plan: self.plans });
        }
        for (rank, gpu) in process.gpus.iter().enumerate() {
            if let Some(rank) = gpus[*gpu].rank_mut(place, rank) {
                rank.activity = if training { rank.facts.stretch / slowest } else { self.setup.physics.quiet };
            }
        }
        if process.gpus.len() > 1 {
            for gpu in process.gpus.clone() {
                self.touch(gpu);
            }
        }
    }

    /// Records the state of a GPU from now on.
    pub(super) fn measure(&mut self, gpu: usize) {
        let here = &mut self.gpus[gpu];
        let levels = here.levels(self.setup.physics.reading);
        here.monitor.change(self.now, levels, self.rule.length);
        if let Some(whole) = here.whole.or_else(|| here.instances.is_some().then_some(gpu)) {
            return self.measure_instances(whole);
        }
        let watts = here.watts();
        here.meter.change(self.now, levels, here.used, watts, here.residents.len());
    }

    /// Marks a GPU as changed for the monitor. Effects of changes elsewhere show up at its next sample.
    pub(super) fn touch(&mut self, gpu: usize) {
        self.measure(gpu);
        self.report(gpu);
    }

    /// The same for a GPU that has been measured.
    fn report(&mut self, gpu: usize) {
        if !self.gpus[gpu].dirty {
            self.gpus[gpu].dirty = true;
            self.changed.push(gpu);
        }
    }

    /// Sends the scheduler new telemetry of the GPUs that changed.
    pub(super) fn publish(&mut self) -> Result<(), SimulationError> {
        // The scheduler's response for one GPU changes other GPUs only later.
        while let Some(place) = self.changed.pop() {
            let gpu = &mut self.gpus[place];
            gpu.dirty = false;
            // Removed instances have no telemetry.
            if gpu.is_lost() || gpu.removed {
                continue;
            }
            if gpu.settles_at.is_none()
                && let Some(settled) = gpu.monitor.settles_at(self.now, self.rule.length)
            {
                self.agenda.plan(settled, Item::Settle { gpu: place });
                gpu.settles_at = Some(settled);
            }
            let device = gpu.id;
            let mut window = gpu.monitor.window(self.now, gpu.used, self.rule, self.setup.physics.telemetry, &mut self.noise);
            window.power = self.watches_power.then(|| Statistics::steady(gpu.watts()));
            let working = self.watches_idle.then(|| {
                let activity = |resident: &DeviceProcess| match resident.process_ref {
                    ProcessRef::Rank { process, .. } => {
                        let does = Fraction::clamped(resident.facts.profile.smact.get() * resident.activity);
                        Some((self.processes[process].as_ref()?.attempt, does))
                    }
                    ProcessRef::Foreign(_) => None,
                };
                gpu.residents.iter().filter_map(activity).collect()
            });
            let processes = std::mem::take(&mut gpu.processes_changed).then(|| {
                let seen = |resident: &DeviceProcess| {
                    let owner = match resident.process_ref {
                        ProcessRef::Rank { process, .. } => Owner::Attempt(self.processes[process].as_ref()?.attempt),
                        ProcessRef::Foreign(place) => Owner::Foreign { pid: place as u32 + 1 },
                    };
                    Some(ProcessUse { owner, memory: Some(resident.memory) })
                };
                gpu.residents.iter().filter_map(seen).collect()
            });
            self.send(Event::GpuWindow { device, window: Box::new(window) })?;
            if let Some(processes) = processes {
                self.send(Event::ProcessesSeen { device, processes })?;
            }
            if let Some(attempts) = working {
                self.send(Event::ActivitySeen { device, attempts })?;
            }
        }
        Ok(())
    }
}
