//! Life cycle of processes: launch, arrival on the GPUs, training, exit.

use carma_core::{AttemptId, Event, Fraction, MiB, Seconds, Signal, Verdict};

use super::agenda::Item;
use super::chance::Draw;
use super::driver::{Decider, SimulationError};
use super::gpu::{DeviceProcess, ProcessRef};
use super::process::{Phase, Process, Training};
use super::record::AttemptRecord;
use super::world::World;

/// Maximum number of progress lines that a job prints when alone.
const MOST_LINES: f64 = 200.0;

impl<D: Decider> World<'_, D> {
    pub(super) fn launch(&mut self, attempt: AttemptId, gpus: Vec<usize>) {
        let job = attempt.job.0 as usize - 1;
        let draw = Draw::new(&self.setup.physics, self.setup.seed, job, attempt.number);
        // Alone, a job is as fast as its slowest rank.
        let whole = (0..).zip(&gpus).map(|(rank, gpu)| self.rank_facts(job, rank, *gpu).whole_stretch).fold(0.0, f64::max);
        let (draw, work) = draw.for_job(self.tasks[job].alone);
        let training = self.tasks[job].saved.unwrap_or(Training { work, done: 0.0 });
        let whole_gpus = gpus.iter().map(|gpu| self.gpus[*gpu].whole.unwrap_or(*gpu)).collect();
        let record = &mut self.records[job];
        record.alone = self.tasks[job].alone * draw.run_time + training.work * (whole - 1.0);
        record.attempts.push(AttemptRecord { launched: self.now, ended: None, gpus: whole_gpus, verdict: None, victim: false });
        self.plans += 1;
        let plan = self.plans;
        let process = Process::new(attempt, job, gpus, training, draw, plan, self.now);
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.processes.push(None);
            self.processes.len() - 1
        });
        self.processes[place] = Some(process);
        self.agenda.plan(self.now + seconds(draw.start_up), Item::Arrive { process: place, plan });
    }

    /// A process that gets the signal to stop exits after one second and loses its work since the last checkpoint. If the signal requests a
    /// checkpoint, it writes that first.
    pub(super) fn stop(&mut self, attempt: AttemptId, signal: Signal) {
        let of = |process: &Option<Process>| process.as_ref().is_some_and(|process| process.attempt == attempt);
        let Some(place) = self.processes.iter().position(of) else { return };
        let Some(process) = &self.processes[place] else { return };
        let (phase, plan) = (process.phase, process.plan);
        if signal != Signal::Checkpoint || phase == Phase::StartingUp {
            return self.agenda.plan(self.now + Seconds::from_secs(1), Item::Gone { process: place, plan });
        }
        // A process that is already winding down exits normally.
        if phase != Phase::WindingDown {
            self.enter(place, Phase::Saving);
            self.agenda.plan(self.now + seconds(self.setup.physics.checkpoint), Item::Saved { process: place, plan });
        }
    }

    /// A process has written its checkpoint, and exits.
    fn saved(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &self.processes[place] else { return Ok(()) };
        let attempt = process.attempt;
        self.tasks[process.job].saved = Some(process.training(self.now));
        self.send(Event::Checkpointed { attempt })?;
        self.exit(place, Verdict::Failed { code: 143 })
    }

    pub(super) fn is_current(&self, process: usize, plan: u64) -> bool {
        self.processes[process].as_ref().is_some_and(|process| process.plan == plan)
    }

    fn is_in(&self, process: usize, phase: Phase) -> bool {
        self.processes[process].as_ref().is_some_and(|process| process.phase == phase)
    }

    pub(super) fn happen(&mut self, item: Item) -> Result<(), SimulationError> {
        match item {
            Item::Arrive { process, plan } if self.is_current(process, plan) => self.arrive(process),
            Item::Grow { process, plan } if self.is_current(process, plan) => self.grow(process),
            Item::Train { process, plan } if self.is_current(process, plan) && self.is_in(process, Phase::Loading) => {
                self.enter(process, Phase::Training);
                self.tell_later(process);
                Ok(())
            }
            Item::Tell { process, plan } if self.is_current(process, plan) && self.is_in(process, Phase::Training) => {
                self.tell_later(process);
                self.tell_progress(process)
            }
            Item::WindDown { process, plan }
                if self.processes[process].as_ref().is_some_and(|process| process.end_plan == plan)
                    && self.is_in(process, Phase::Training) =>
            {
                self.enter(process, Phase::WindingDown);
                Ok(())
            }
            Item::End { process, plan } if self.is_current(process, plan) => self.exit(process, Verdict::Succeeded),
            Item::Gone { process, plan } if self.is_current(process, plan) => self.exit(process, Verdict::Failed { code: 143 }),
            Item::Saved { process, plan } if self.is_current(process, plan) => self.saved(process),
            Item::Settle { gpu } => {
                self.gpus[gpu].settles_at = None;
                self.touch(gpu);
                Ok(())
            }
            Item::Switched { place } => self.switched(place),
            Item::Disturb { place, begins } => self.disturb(place, begins),
            _ => Ok(()),
        }
    }

    /// A process that reports progress prints it every minute, or less often if it is very long.
    fn tell_later(&mut self, place: usize) {
        let Some(process) = &self.processes[place] else { return };
        if self.setup.knowledge.tells_progress(process.attempt.job, self.setup.seed) {
            let apart = (process.training(self.now).work / MOST_LINES).max(60.0);
            self.agenda.plan(self.now + seconds(apart), Item::Tell { process: place, plan: process.plan });
        }
    }

    fn tell_progress(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &self.processes[place] else { return Ok(()) };
        let Training { work, done } = process.training(self.now);
        self.send(Event::Progress { attempt: process.attempt, done: Fraction::clamped(done / work) })
    }

    /// A process reaches its GPUs and takes its first memory.
    fn arrive(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &self.processes[place] else { return Ok(()) };
        let (job, gpus, plan, loading) = (process.job, process.gpus.clone(), process.plan, process.draw.loading);
        for (rank, gpu) in gpus.into_iter().enumerate() {
            let facts = *self.rank_facts(job, rank, gpu);
            let process_ref = ProcessRef::Rank { process: place, rank };
            self.gpus[gpu].residents.push(DeviceProcess {
                process_ref,
                facts,
                memory: MiB::ZERO,
                quiet: true,
                slowdown: 1.0,
                activity: self.setup.physics.quiet,
            });
        }
        self.enter(place, Phase::Loading);
        self.agenda.plan(self.now + seconds(loading), Item::Train { process: place, plan });
        self.grow(place)
    }

    /// A process enters another phase on its GPUs.
    fn enter(&mut self, place: usize, phase: Phase) {
        let Some(process) = &mut self.processes[place] else { return };
        process.phase = phase;
        if phase == Phase::WindingDown {
            let end = self.now + seconds(process.draw.winding_down);
            self.agenda.plan(end, Item::End { process: place, plan: process.plan });
        }
        for (rank, gpu) in process.gpus.clone().into_iter().enumerate() {
            if let Some(resident) = self.gpus[gpu].place_of(ProcessRef::Rank { process: place, rank }) {
                self.gpus[gpu].residents[resident].quiet = phase != Phase::Training;
            }
            self.load_changed(gpu);
        }
    }

    pub(super) fn exit(&mut self, place: usize, verdict: Verdict) -> Result<(), SimulationError> {
        let Some(process) = self.processes[place].take() else { return Ok(()) };
        self.free_places.push(place);
        for (rank, gpu) in process.gpus.iter().enumerate() {
            self.gpus[*gpu].remove(ProcessRef::Rank { process: place, rank });
            self.load_changed(*gpu);
        }
        if let Some(attempt) = self.records[process.job].attempts.last_mut() {
            (attempt.ended, attempt.verdict) = (Some(self.now), Some(verdict.clone()));
        }
        if let Some(job) = self.decider.scheduler().job(process.attempt.job).filter(|_| verdict == Verdict::Succeeded) {
            self.learned.insert(self.tasks[process.job].workload, job.spec.interference);
        }
        self.send(Event::JobExited { attempt: process.attempt, verdict })
    }
}

pub(super) fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap_or_default()
}
