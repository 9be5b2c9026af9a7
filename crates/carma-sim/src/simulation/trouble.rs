//! Disturbances as they happen.

use carma_core::{Event, Fraction, MiB, Verdict};

use super::disturbance::Disturbance;
use super::driver::{Decider, SimulationError};
use super::facts::RankFacts;
use super::gpu::{Resident, Who};
use super::process::Process;
use super::world::World;
use crate::catalogue::RankProfile;

impl<D: Decider> World<'_, D> {
    pub(super) fn disturb(&mut self, place: usize, begins: bool) -> Result<(), SimulationError> {
        let gpu = self.setup.disturbances[place].gpu();
        let device = self.gpus[gpu].id;
        match (&self.setup.disturbances[place], begins) {
            (Disturbance::Foreign { memory, smact, .. }, true) => {
                let profile =
                    RankProfile { peak: *memory, smact: *smact, smocc: *smact, drama: Fraction::ZERO, utilisation: *smact, power: None };
                let facts = RankFacts::new(self.setup.interference, None, &profile, self.gpus[gpu].kind, Fraction::ONE);
                let memory = (*memory).min(self.gpus[gpu].free());
                self.gpus[gpu].residents.push(Resident {
                    who: Who::Foreign(place),
                    facts,
                    memory: MiB::ZERO,
                    quiet: false,
                    slowdown: 1.0,
                    activity: 1.0,
                });
                let resident = self.gpus[gpu].residents.len() - 1;
                self.gpus[gpu].take(resident, memory);
            }
            (Disturbance::Foreign { .. }, false) => self.gpus[gpu].remove(Who::Foreign(place)),
            (Disturbance::Loss { .. }, true) => {
                self.gpus[gpu].lost = true;
                self.tell(Event::GpuLost { device })?;
                let on_it = |process: &Process| process.gpus.contains(&gpu);
                let victims = (0..self.processes.len()).filter(|place| self.processes[*place].as_ref().is_some_and(on_it));
                for victim in victims.collect::<Vec<_>>() {
                    self.exit(victim, Verdict::GpuLost)?;
                }
            }
            (Disturbance::Loss { .. }, false) => {
                self.gpus[gpu].lost = false;
                self.tell(Event::GpuBack { device })?;
            }
        }
        self.gpus[gpu].processes_changed = true;
        self.load_changed(gpu);
        Ok(())
    }
}
