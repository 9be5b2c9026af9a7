//! A world for the demo, second by second: jobs that start up, take memory, slow each other down, and end.
//!
//! It is there to show decisions, not to predict run times: its rules are rough, and nothing here is checked against
//! measurements. The scheduler sees of it what a monitor would see: samples, processes, exits.

use std::io::Write;

use anyhow::{Context, Result};
use carma_core::{
    Action, AttemptId, DeviceId, DeviceSpec, Event, EventLog, Fraction, JobId, JobSpec, MemoryEstimate, MemoryNeed, MiB, Owner, PerRank,
    ProcessUse, RequeueReason, Sample, Scheduler, ServerId, ServerSpec, Settings, Time, Utilisation, Verdict,
};

use super::trace::{Arrival, TRACE};

const CAPACITY: MiB = MiB(40_960);
/// From launch to the first memory on a GPU, and from there to the peak.
const START_UP: f64 = 8.0;
const GROWTH: f64 = 20.0;
/// Give up on a schedule that makes no progress.
const LONGEST: u32 = 200_000;

/// One schedule of the trace.
#[derive(Debug)]
pub(super) struct Run {
    /// For each GPU, how many jobs were on it, second by second.
    pub(super) occupancy: Vec<Vec<usize>>,
    /// For each job, when it was submitted, when it last started and when it ended.
    pub(super) jobs: Vec<Times>,
    /// Jobs that ran out of memory and came back.
    pub(super) recoveries: Vec<Recovery>,
    /// Why a job waited, as it was told early on.
    pub(super) why: Option<Why>,
}

/// A job that ran out of memory and came back.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) second: u32,
    pub(super) workload: &'static str,
    /// Memory its next attempt starts with, at least.
    pub(super) floor: MiB,
    /// Its next attempt starts on an idle GPU.
    pub(super) whole_gpu: bool,
}

/// Why a job waited.
#[derive(Debug)]
pub(super) struct Why {
    pub(super) second: u32,
    pub(super) workload: &'static str,
    pub(super) explanation: String,
}

/// When things happened to a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) submitted: u32,
    pub(super) started: u32,
    /// Unset while it runs, and for ever if it failed.
    pub(super) ended: Option<u32>,
}

/// An attempt under way.
struct Process {
    attempt: AttemptId,
    arrival: &'static Arrival,
    devices: Vec<DeviceId>,
    age: f64,
    /// Seconds of work done, as when alone.
    done: f64,
}

impl Process {
    /// Memory taken on one of its GPUs so far.
    fn memory(&self, rank: usize) -> MiB {
        let peak = self.arrival.workload.memory[rank];
        let grown = ((self.age - START_UP) / GROWTH).clamp(0.0, 1.0);
        MiB((peak as f64 * grown) as u64)
    }

    fn is_on_gpu(&self) -> bool {
        self.age > START_UP
    }
}

struct World<W> {
    log: EventLog<W>,
    second: u32,
    gpus: Vec<DeviceId>,
    processes: Vec<Process>,
    run: Run,
}

impl Run {
    /// Schedules the trace by these rules on so many GPUs.
    pub(super) fn of(settings: &Settings, gpus: u16, log: impl Write) -> Result<Self> {
        let server = ServerId(0);
        let gpus: Vec<DeviceId> = (0..gpus).map(|ordinal| DeviceId::gpu(server, ordinal)).collect();
        let unknown = Times { submitted: 0, started: 0, ended: None };
        let run = Self { occupancy: vec![Vec::new(); gpus.len()], jobs: vec![unknown; TRACE.len()], recoveries: Vec::new(), why: None };
        let mut world = World { log: EventLog::new(settings, log)?, second: 0, gpus, processes: Vec::new(), run };
        world.event(Event::ServerAttached(ServerSpec::new(server)))?;
        for device in world.gpus.clone() {
            world.event(Event::GpuAttached(DeviceSpec::new(device, CAPACITY)))?;
        }
        while world.second < LONGEST && !world.is_over() {
            world.pass_a_second()?;
        }
        world.log.into_output().flush().context("cannot write the event log")?;
        Ok(world.run)
    }

    /// From the first submission to the last end.
    pub(super) fn makespan(&self) -> u32 {
        self.jobs.iter().filter_map(|times| times.ended).max().unwrap_or(0)
    }
}

impl<W: Write> World<W> {
    fn scheduler(&self) -> &Scheduler {
        self.log.scheduler()
    }

    fn is_over(&self) -> bool {
        let over = self.scheduler().jobs().filter(|job| job.state.outcome().is_some()).count();
        over == TRACE.len()
    }

    fn event(&mut self, event: Event) -> Result<()> {
        let now = Time::from_secs(self.second.into());
        for action in self.log.handle(event, now)? {
            match action {
                Action::Launch { attempt, placement, .. } => {
                    self.run.jobs[index(attempt.job)].started = self.second;
                    let devices = placement.devices.iter().map(|granted| granted.device).collect();
                    self.processes.push(Process { attempt, arrival: &TRACE[index(attempt.job)], devices, age: 0.0, done: 0.0 });
                }
                Action::Requeue { job, floor, whole_gpu, reason: RequeueReason::After(Verdict::OutOfMemory) } => {
                    let workload = TRACE[index(job)].workload.name;
                    self.run.recoveries.push(Recovery { second: self.second, workload, floor, whole_gpu });
                }
                Action::Requeue { .. } | Action::Signal { .. } | Action::Finish { .. } => {}
            }
        }
        Ok(())
    }

    fn pass_a_second(&mut self) -> Result<()> {
        self.advance();
        self.end_processes()?;
        self.show_gpus()?;
        self.submit()?;
        for (gpu, history) in self.gpus.iter().zip(&mut self.run.occupancy) {
            history.push(self.processes.iter().filter(|process| process.devices.contains(gpu)).count());
        }
        self.second += 1;
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        for (id, arrival) in (1..).map(JobId).zip(&TRACE) {
            if arrival.at != self.second {
                continue;
            }
            self.run.jobs[index(id)].submitted = self.second;
            let estimate = |peak: &u64| MemoryEstimate::exactly(MiB((*peak as f64 * arrival.estimate) as u64));
            let estimated = Some(PerRank::Each(arrival.workload.memory.iter().map(estimate).collect()));
            let memory = MemoryNeed { known: None, estimated };
            let busy = Some(Fraction::clamped(arrival.workload.smact));
            let utilisation = Utilisation { gpu: busy, smact: busy, ..Utilisation::default() };
            let sharing = Some(arrival.workload.sharing_class());
            self.event(Event::JobSubmitted(Box::new(JobSpec {
                gpus: arrival.workload.gpus,
                memory,
                utilisation,
                sharing,
                ..JobSpec::new(id)
            })))?;
            let waits = self.scheduler().job(id).is_some_and(|job| job.state.waiting().is_some());
            if waits && self.run.why.is_none() && self.second > 300 {
                let explanation = self.scheduler().explain(id)?.to_string();
                self.run.why = Some(Why { second: self.second, workload: arrival.workload.name, explanation });
            }
        }
        Ok(())
    }

    /// A job runs at the speed of its slowest rank. What its neighbours keep busy, it must wait for; a busy neighbour is
    /// felt far more than a calm one.
    fn speed(&self, process: &Process) -> f64 {
        let neighbours = |gpu: &DeviceId| -> f64 {
            let others = self.processes.iter().filter(|other| other.attempt != process.attempt && other.is_on_gpu());
            others.filter(|other| other.devices.contains(gpu)).map(|other| 1.7 * other.arrival.workload.smact.powf(4.2)).sum()
        };
        1.0 / (1.0 + process.devices.iter().map(neighbours).fold(0.0, f64::max))
    }

    fn advance(&mut self) {
        let speeds: Vec<f64> = self.processes.iter().map(|process| self.speed(process)).collect();
        for (process, speed) in self.processes.iter_mut().zip(speeds) {
            process.age += 1.0;
            process.done += speed;
        }
    }

    fn used(&self, gpu: DeviceId) -> MiB {
        let rank = |process: &Process| process.devices.iter().position(|device| *device == gpu).map(|rank| process.memory(rank));
        self.processes.iter().filter_map(rank).sum()
    }

    fn end_processes(&mut self) -> Result<()> {
        while let Some(full) = self.gpus.iter().copied().find(|gpu| self.used(*gpu) > CAPACITY) {
            // The youngest is the one that still asks for memory.
            let Some(victim) = self.processes.iter().rposition(|process| process.devices.contains(&full)) else { break };
            let attempt = self.processes.remove(victim).attempt;
            self.event(Event::JobExited { attempt, verdict: Verdict::OutOfMemory })?;
        }
        while let Some(done) = self.processes.iter().position(|process| process.done >= process.arrival.workload.alone) {
            let attempt = self.processes.remove(done).attempt;
            self.run.jobs[index(attempt.job)].ended = Some(self.second);
            self.event(Event::JobExited { attempt, verdict: Verdict::Succeeded })?;
        }
        Ok(())
    }

    /// What the monitor sees each second.
    fn show_gpus(&mut self) -> Result<()> {
        for device in self.gpus.clone() {
            let on_gpu: Vec<(&Process, usize)> = self
                .processes
                .iter()
                .filter(|process| process.is_on_gpu())
                .filter_map(|process| Some((process, process.devices.iter().position(|other| *other == device)?)))
                .collect();
            let process = |(process, rank): &(&Process, usize)| ProcessUse {
                owner: Owner::Attempt(process.attempt),
                memory: Some(process.memory(*rank)),
            };
            let processes = on_gpu.iter().map(process).collect();
            let busy = |metric: fn(&Arrival) -> f64| {
                let idle: f64 = on_gpu.iter().map(|(process, _)| 1.0 - metric(process.arrival)).product();
                Some(Fraction::clamped(1.0 - idle))
            };
            let sample = Sample {
                smact: busy(|arrival| arrival.workload.smact),
                smocc: busy(|arrival| arrival.workload.smocc),
                drama: busy(|arrival| arrival.workload.drama),
                ..Sample::new(Time::from_secs(self.second.into()), self.used(device))
            };
            self.event(Event::ProcessesSeen { device, processes })?;
            self.event(Event::GpuSampled { device, sample })?;
        }
        Ok(())
    }
}

/// Jobs are named by their place in the trace, from 1.
fn index(job: JobId) -> usize {
    job.0 as usize - 1
}
