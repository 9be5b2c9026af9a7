//! Memory of processes: it grows until a GPU is full, or up to the limits that the driver enforces.

use carma_core::{AttemptId, DriverLimits, MiB, Tenant, Verdict};

use super::agenda::Item;
use super::driver::{Decider, SimulationError};
use super::gpu::{DeviceProcess, ProcessRef};
use super::life::seconds;
use super::physics::Physics;
use super::world::World;

impl<D: Decider> World<'_, D> {
    /// A process requests its next part of memory on all its GPUs; if one has no room, it dies.
    pub(super) fn grow(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &mut self.processes[place] else { return Ok(()) };
        let (step, plan, attempt) = (process.draw.growth / f64::from(Physics::REQUESTS), process.plan, process.attempt);
        let requests = process.requests;
        process.requests += 1;
        let mut is_last = true;
        for (rank, gpu) in process.gpus.clone().into_iter().enumerate() {
            let rank = ProcessRef::Rank { process: place, rank };
            let Some(&DeviceProcess { facts, memory, .. }) = self.gpus[gpu].resident(rank) else { continue };
            let request = self.setup.physics.memory_request(facts.peak(), requests);
            let sizes = [request.wanted, request.without_cache];
            let limits = self.limits(attempt, gpu);
            if let Some(limits) = limits {
                let guaranteed = sizes.into_iter().find(|size| *size <= limits.soft).unwrap_or_default();
                self.evict_borrowers(gpu, place, guaranteed - memory)?;
            }
            let most = limits.map_or(MiB(u64::MAX), |limits| limits.hard) - memory;
            let room = self.gpus[gpu].free().min(most);
            let Some(size) = sizes.into_iter().find(|size| *size - memory <= room) else {
                let reserved = self.tenant(attempt, gpu).map_or(MiB::ZERO, |tenant| tenant.reserved);
                return self.out_of_memory(place, request.wanted <= reserved);
            };
            let here = &mut self.gpus[gpu];
            if let Some(resident) = here.place_of(rank) {
                here.take(resident, size - memory);
            }
            here.processes_changed = true;
            is_last = request.is_last;
            self.touch(gpu);
        }
        if !is_last {
            self.agenda.plan(self.now + seconds(step), Item::Grow { process: place, plan });
        }
        Ok(())
    }

    /// For memory that is guaranteed to a process, the driver evicts those that borrow, the largest borrower first.
    fn evict_borrowers(&mut self, gpu: usize, for_process: usize, needed: MiB) -> Result<(), SimulationError> {
        while self.gpus[gpu].free() < needed {
            let borrowed = |resident: &DeviceProcess| {
                let ProcessRef::Rank { process, .. } = resident.process_ref else { return None };
                let limits = self.limits(self.processes[process].as_ref()?.attempt, gpu)?;
                let borrowed = resident.memory - limits.soft;
                (process != for_process && borrowed > MiB::ZERO).then_some((borrowed, process))
            };
            let Some((_, process)) = self.gpus[gpu].residents.iter().filter_map(borrowed).max() else { return Ok(()) };
            self.out_of_memory(process, false)?;
        }
        Ok(())
    }

    /// A process runs out of memory; a victim is a job that stayed within its reservation.
    fn out_of_memory(&mut self, place: usize, victim: bool) -> Result<(), SimulationError> {
        let job = self.processes[place].as_ref().map(|process| process.job);
        if let Some(attempt) = job.and_then(|job| self.records[job].attempts.last_mut()) {
            attempt.victim = victim;
        }
        self.exit(place, Verdict::OutOfMemory)
    }

    fn limits(&self, attempt: AttemptId, gpu: usize) -> Option<DriverLimits> {
        self.tenant(attempt, gpu)?.memory_limits()
    }

    fn tenant(&self, attempt: AttemptId, gpu: usize) -> Option<&Tenant> {
        let device = self.decider.scheduler().fleet().device(self.gpus[gpu].id)?;
        device.tenants.iter().find(|tenant| tenant.attempt == attempt)
    }
}
