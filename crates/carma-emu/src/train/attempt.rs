//! One run of a job: its next step, and how it is done.

use std::io::Write;

use carma_core::MiB;
use carma_sim::{Draw, Physics};

use super::checkpoint::{Checkpoint, write};
use super::progress::Progress;
use super::{Job, TrainError};
use crate::cuda::{CudaError, Program, Rank, launch};
use crate::machine::Machine;

/// The phase of a run; times are in emulated seconds.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// On the CPU, before it uses any GPU.
    StartingUp { until: f64 },
    /// On its GPUs, not yet training.
    Loading { until: f64 },
    /// Training, as fast as its neighbours let it.
    Training,
    /// Done with training.
    WindingDown { until: f64 },
}

/// The next thing to wait for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// This time, or a little earlier or later.
    At(f64),
    /// Nothing: the work is done.
    Over,
}

/// A running job.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    job: &'a Job<'a>,
    seed: u64,
    machine: &'a Machine,
    program: Option<Program<'a>>,
    phase: Phase,
    physics: Physics,
    draw: Draw,
    /// Training done before and in this run, in seconds as a catalogue counts them.
    before: f64,
    done: f64,
    /// Requests for memory so far, and the time of the next.
    requests: u32,
    grows_at: f64,
    progress: Progress,
}

impl<'a> Attempt<'a> {
    /// A run that starts now, with this much done by earlier runs.
    pub(super) fn new(job: &'a Job<'a>, machine: &'a Machine, (seed, done): (u64, f64), now: f64) -> Self {
        let physics = Physics::default();
        let (draw, training) = Draw::new(&physics, seed, 0, 0).for_job(job.workload.seconds.get());
        let before = done.clamp(0.0, training);
        Self {
            job,
            seed,
            machine,
            program: None,
            phase: Phase::StartingUp { until: now + draw.start_up },
            physics,
            draw,
            before,
            done: before,
            requests: 0,
            grows_at: f64::INFINITY,
            progress: Progress::new(training, job.workload.epochs.unwrap_or(1), before),
        }
    }

    /// The epoch it is in, from 1.
    pub(super) fn epoch(&self) -> u32 {
        self.progress.epoch(self.done)
    }

    /// Whether the training is complete.
    pub(super) fn is_done(&self) -> bool {
        // A checkpoint is not exact to the last digit.
        self.progress.total() - self.done < 1e-6
    }

    /// Does the due steps, and returns the next.
    pub(super) fn step(&mut self, now: f64, output: &mut impl Write) -> Result<Next, TrainError> {
        self.grow(now)?;
        let next = match self.phase {
            Phase::StartingUp { until } | Phase::Loading { until } | Phase::WindingDown { until } if now < until => {
                // A lost GPU or a memory error also ends a waiting job.
                self.program.as_ref().map_or(Ok(0), |program| program.held(0))?;
                until
            }
            Phase::StartingUp { .. } => {
                self.arrive(now, output)?;
                now
            }
            Phase::Loading { .. } => {
                self.enter(Phase::Training)?;
                now
            }
            Phase::Training => self.train(now, output)?,
            Phase::WindingDown { .. } => {
                self.program = None;
                return Ok(Next::Over);
            }
        };
        Ok(Next::At(next.min(self.grows_at)))
    }

    /// Stops: saves the progress, and prints it. Saving must not depend on a reader of the output.
    pub(super) fn stop(&mut self, now: f64, output: &mut impl Write) -> Result<(), TrainError> {
        let printed = if matches!(self.phase, Phase::Training) { self.train(now, output).map(drop) } else { Ok(()) };
        self.save()?;
        printed
    }

    /// Saves the progress, if it has a checkpoint.
    pub(super) fn save(&self) -> Result<(), TrainError> {
        let Some(file) = self.job.checkpoint else { return Ok(()) };
        let Self { seed, done, .. } = *self;
        Ok(write(file, &Checkpoint { workload: self.job.workload.name.clone(), epoch: self.epoch(), done, seed })?)
    }

    /// Attaches to its GPUs and takes its first memory.
    fn arrive(&mut self, now: f64, output: &mut impl Write) -> Result<(), TrainError> {
        let workload = self.job.workload;
        let ranks: Vec<Rank<'_>> = workload.ranks.iter().map(|profile| Rank { profile, workload: Some(workload) }).collect();
        let program = launch(self.machine, &ranks)?;
        for ordinal in 0..ranks.len() {
            let (product, bytes) = program.device(ordinal)?;
            writeln!(output, "rank {ordinal} on cuda:{ordinal}: {product}, {:.2} GiB", bytes as f64 / f64::from(1 << 30))?;
        }
        self.program = Some(program);
        self.phase = Phase::Loading { until: now + self.draw.loading };
        self.grows_at = now;
        self.grow(now)
    }

    /// Allocates its next part of memory on all its GPUs, if due.
    fn grow(&mut self, now: f64) -> Result<(), TrainError> {
        let Some(program) = self.program.as_ref().filter(|_| now >= self.grows_at) else { return Ok(()) };
        let mut is_last = true;
        for (ordinal, rank) in self.job.workload.ranks.iter().enumerate() {
            let request = self.physics.memory_request(rank.peak, self.requests);
            let hold = |size: MiB| program.hold(ordinal, size.0 << 20);
            match hold(request.wanted) {
                Err(full @ CudaError::OutOfMemory { .. }) => hold(request.without_cache).map_err(|_| full)?,
                other => other?,
            }
            is_last = request.is_last;
        }
        self.requests += 1;
        self.grows_at = if is_last { f64::INFINITY } else { now + self.draw.growth / f64::from(Physics::REQUESTS) };
        Ok(())
    }

    /// Updates the progress; returns when to update it next.
    fn train(&mut self, now: f64, output: &mut impl Write) -> Result<f64, TrainError> {
        let Some(program) = &self.program else { return Ok(now) };
        let (work, rate) = program.work()?;
        let epoch = self.epoch();
        self.done = self.before + work;
        self.progress.print(self.done, rate, output)?;
        let finished = self.progress.finished(self.done);
        if finished {
            self.done = self.progress.total();
            self.enter(Phase::WindingDown { until: now + self.draw.winding_down })?;
        }
        if finished || self.epoch() > epoch {
            self.save()?;
        }
        Ok(if finished { now } else { now + (self.progress.next() - self.done) / rate })
    }

    /// Enters another phase on its GPUs.
    fn enter(&mut self, phase: Phase) -> Result<(), TrainError> {
        self.phase = phase;
        Ok(self.program.as_ref().map_or(Ok(()), |program| program.run(matches!(phase, Phase::Training)))?)
    }
}
