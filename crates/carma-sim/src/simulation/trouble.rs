//! Applies disturbances.

use carma_core::{Event, Fraction, MiB, Verdict};

use super::disturbance::Disturbance;
use super::driver::{Decider, SimulationError};
use super::facts::RankFacts;
use super::gpu::{DeviceProcess, ProcessRef};
use super::process::Process;
use super::world::World;
use crate::catalogue::RankProfile;

impl<D: Decider> World<'_, D> {
    pub(super) fn disturb(&mut self, place: usize, begins: bool) -> Result<(), SimulationError> {
        let (each, _) = self.setup.sharing.devices();
        let first = self.setup.disturbances[place].gpu() * usize::from(each);
        match (&self.setup.disturbances[place], begins) {
            (Disturbance::Foreign { memory, smact, .. }, true) => self.join(first, place, *memory, *smact),
            (Disturbance::Foreign { .. }, false) => self.gpus[first].remove(ProcessRef::Foreign(place)),
            // A lost GPU loses its instances too. A GPU lost for two reasons recovers when both are gone.
            (Disturbance::Loss { .. }, true) => {
                for gpu in first..first + usize::from(each) {
                    self.gpus[gpu].losses += 1;
                    if self.gpus[gpu].losses == 1 {
                        self.lose(gpu)?;
                    }
                }
            }
            (Disturbance::Loss { .. }, false) => {
                for gpu in first..first + usize::from(each) {
                    self.gpus[gpu].losses -= 1;
                    if self.gpus[gpu].losses == 0 {
                        self.send(Event::GpuRecovered { device: self.gpus[gpu].id })?;
                    }
                }
            }
        }
        for gpu in first..first + usize::from(each) {
            self.gpus[gpu].processes_changed = true;
            self.load_changed(gpu);
        }
        Ok(())
    }

    /// A foreign process starts, and takes as much of its memory as is free.
    fn join(&mut self, gpu: usize, place: usize, memory: MiB, smact: Fraction) {
        let (_, share) = self.setup.sharing.devices();
        let gpu = &mut self.gpus[gpu];
        let profile = RankProfile { peak: memory, smact, smocc: smact, drama: Fraction::ZERO, utilisation: smact, power: None };
        let facts = RankFacts::new(self.setup.interference, None, &profile, gpu.kind, share);
        gpu.residents.push(DeviceProcess {
            process_ref: ProcessRef::Foreign(place),
            facts,
            memory: MiB::ZERO,
            quiet: false,
            slowdown: 1.0,
            activity: 1.0,
        });
        gpu.take(gpu.residents.len() - 1, memory.min(gpu.free()));
    }

    fn lose(&mut self, gpu: usize) -> Result<(), SimulationError> {
        self.send(Event::GpuLost { device: self.gpus[gpu].id })?;
        let instances = self.instances(gpu);
        let on_it = |process: &Process| process.gpus.iter().any(|place| *place == gpu || instances.contains(place));
        let victims = (0..self.processes.len()).filter(|place| self.processes[*place].as_ref().is_some_and(on_it));
        for victim in victims.collect::<Vec<_>>() {
            self.exit(victim, Verdict::GpuLost)?;
        }
        Ok(())
    }
}
