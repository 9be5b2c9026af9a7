//! Who slows whom down: speeds, counters and power after a change, and what the monitor shows of it.

use carma_core::{Event, Owner, ProcessUse};

use super::agenda::Item;
use super::chance::{normal, stream};
use super::driver::{Decider, SimulationError};
use super::gpu::{Gpu, Resident, Who};
use super::process::Phase;
use super::world::World;

impl<D: Decider> World<'_, D> {
    /// Who is on a GPU has changed: speeds, counters and power follow, on the whole server where its host is crowded.
    pub(super) fn load_changed(&mut self, gpu: usize) {
        let Self { setup, gpus, processes, tasks, .. } = self;
        let deviation = setup.interference.pair_deviation;
        let workload = |who: Who| match who {
            Who::Rank { process, .. } => processes[process].as_ref().map_or(0, |process| tasks[process.job].workload.0 as u64 + 1),
            Who::Foreign(_) => 0,
        };
        gpus[gpu].contend(setup.interference, |me, other| {
            if deviation > 0.0 { (deviation * normal(&mut stream(setup.seed, 5, workload(me), workload(other)))).exp() } else { 1.0 }
        });
        let server = self.servers[gpus[gpu].id.server().0 as usize].clone();
        let busy: usize = gpus[server.clone()].iter().map(Gpu::busy).sum();
        let host = 1.0 + setup.physics.host_contention * busy.saturating_sub(server.len()) as f64;
        if host.to_bits() == gpus[gpu].host.to_bits() {
            self.adjust_all_on(gpu);
        } else {
            for gpu in server {
                self.gpus[gpu].host = host;
                self.adjust_all_on(gpu);
            }
        }
    }

    fn adjust_all_on(&mut self, gpu: usize) {
        for resident in 0..self.gpus[gpu].residents.len() {
            if let Who::Rank { process, .. } = self.gpus[gpu].residents[resident].who {
                self.adjust(process);
            }
        }
        self.touch(gpu);
    }

    /// A job is as fast as its slowest rank.
    fn adjust(&mut self, place: usize) {
        let Self { gpus, processes, .. } = self;
        let Some(process) = &mut processes[place] else { return };
        let slowdown = |(rank, gpu): (usize, &usize)| {
            let gpu = &gpus[*gpu];
            let resident = gpu.place_of(Who::Rank { process: place, rank }).map(|resident| &gpu.residents[resident]);
            resident.map_or(1.0, |resident| resident.slowdown * resident.facts.stretch * gpu.host)
        };
        let slowest = process.gpus.iter().enumerate().map(slowdown).fold(0.0, f64::max);
        let speed = if process.phase == Phase::Training { 1.0 / slowest } else { 0.0 };
        if let Some(end) = process.set_speed(speed, self.now) {
            self.plans += 1;
            process.end_plan = self.plans;
            self.agenda.plan(end, Item::WindDown { process: place, plan: self.plans });
        }
    }

    /// The monitor will see something new on a GPU.
    pub(super) fn touch(&mut self, gpu: usize) {
        if !self.gpus[gpu].dirty {
            self.gpus[gpu].dirty = true;
            self.changed.push(gpu);
        }
    }

    /// Shows the scheduler what the monitor sees of the GPUs that changed.
    pub(super) fn publish(&mut self) -> Result<(), SimulationError> {
        // What the scheduler does about one GPU changes others only later.
        let quiet = self.setup.physics.quiet;
        while let Some(place) = self.changed.pop() {
            let gpu = &mut self.gpus[place];
            gpu.dirty = false;
            let levels = gpu.levels(quiet, self.setup.physics.reading);
            let watts = gpu.watts(quiet);
            gpu.meter.change(self.now, levels, gpu.used, watts, gpu.residents.len());
            gpu.monitor.change(self.now, levels, self.rule.length);
            if gpu.lost {
                continue;
            }
            if gpu.settles_at.is_none()
                && let Some(settled) = gpu.monitor.settles_at(self.now, self.rule.length)
            {
                self.agenda.plan(settled, Item::Settle { gpu: place });
                gpu.settles_at = Some(settled);
            }
            let device = gpu.id;
            let window = gpu.monitor.window(self.now, gpu.used, self.rule, self.setup.physics.telemetry, &mut self.noise);
            let processes = std::mem::take(&mut gpu.processes_changed).then(|| {
                let seen = |resident: &Resident| {
                    let owner = match resident.who {
                        Who::Rank { process, .. } => Owner::Attempt(self.processes[process].as_ref()?.attempt),
                        Who::Foreign(place) => Owner::Foreign { pid: place as u32 + 1 },
                    };
                    Some(ProcessUse { owner, memory: Some(resident.memory) })
                };
                gpu.residents.iter().filter_map(seen).collect()
            });
            self.tell(Event::GpuWindow { device, window: Box::new(window) })?;
            if let Some(processes) = processes {
                self.tell(Event::ProcessesSeen { device, processes })?;
            }
        }
        Ok(())
    }
}
