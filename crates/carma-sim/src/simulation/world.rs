//! The simulated world: the loop over what happens, and what happens to GPUs and processes.

use std::ops::Range;

use carma_core::{
    Action, AttemptId, DeviceId, DeviceSpec, Event, Fraction, JobId, MiB, Owner, ProcessUse, Seconds, ServerId, ServerSpec, Signal, Time,
    Verdict, WindowRule,
};
use fastrand::Rng;

use super::Simulation;
use super::agenda::{Agenda, Item};
use super::chance::{Draw, normal, stream};
use super::disturbance::Disturbance;
use super::driver::{Decider, SimulationError};
use super::facts::{FactTable, RankFacts};
use super::gpu::{Gpu, Resident, Who};
use super::meter::Meter;
use super::process::{Phase, Process, REQUESTS};
use super::record::{AttemptRecord, GpuRecord, JobRecord, Run};
use super::telemetry::Monitor;
use crate::catalogue::{RankProfile, Workload, WorkloadId};
use crate::hardware::{GPU_TYPES, GpuType};

/// A job of the trace, ready to be simulated.
struct Task {
    workload: WorkloadId,
    /// Its time alone on the GPU it was measured on.
    alone: f64,
}

pub(super) struct World<'a, D> {
    setup: &'a Simulation<'a>,
    decider: D,
    facts: FactTable,
    rule: WindowRule,
    now: Time,
    agenda: Agenda,
    tasks: Vec<Task>,
    gpus: Vec<Gpu>,
    /// Where each server's devices stand among all.
    servers: Vec<Range<usize>>,
    processes: Vec<Option<Process>>,
    free_places: Vec<usize>,
    plans: u64,
    /// GPUs to be looked at before time goes on.
    changed: Vec<usize>,
    noise: Rng,
    records: Vec<JobRecord>,
    over: usize,
    ended: Time,
    events: u64,
}

impl<'a, D: Decider> World<'a, D> {
    pub(super) fn new(setup: &'a Simulation<'a>, decider: D) -> Result<Self, SimulationError> {
        let task = |job: &crate::TraceJob| {
            let workload = job.workload.ok_or_else(|| SimulationError::Unmapped(job.name.clone()))?;
            Ok(Task { workload, alone: job.duration.unwrap_or(setup.catalogue.get(workload).seconds).get() })
        };
        let tasks = setup.trace.jobs.iter().map(task).collect::<Result<Vec<_>, SimulationError>>()?;
        let record = |job: &crate::TraceJob| JobRecord {
            submitted: Time::ZERO + job.submitted,
            alone: 0.0,
            attempts: Vec::new(),
            ended: None,
            outcome: None,
        };
        let rule = decider.scheduler().config().window.rule;
        let mut world = Self {
            facts: FactTable::new(setup.catalogue, setup.interference, setup.servers, setup.sharing),
            decider,
            rule,
            now: Time::ZERO,
            agenda: Agenda::default(),
            tasks,
            gpus: Vec::new(),
            servers: Vec::new(),
            processes: Vec::new(),
            free_places: Vec::new(),
            plans: 0,
            changed: Vec::new(),
            noise: stream(setup.seed, 4, 0, 0),
            records: setup.trace.jobs.iter().map(record).collect(),
            over: 0,
            ended: Time::ZERO,
            events: 0,
            setup,
        };
        world.attach_servers()?;
        for (place, disturbance) in setup.disturbances.iter().enumerate() {
            if disturbance.gpu() >= world.gpus.len() {
                return Err(SimulationError::NoGpu(disturbance.gpu()));
            }
            let (from, until) = disturbance.span();
            world.agenda.plan(from, Item::Disturb { place, begins: true });
            until.into_iter().for_each(|until| world.agenda.plan(until, Item::Disturb { place, begins: false }));
        }
        Ok(world)
    }

    /// The monitor has been watching idle GPUs for a while when the first job comes.
    fn attach_servers(&mut self) -> Result<(), SimulationError> {
        let groups = self.setup.servers.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.servers as usize));
        let (devices, share) = self.setup.sharing.devices();
        for (server, group) in (0..).map(ServerId).zip(groups) {
            self.tell(Event::ServerAttached(ServerSpec::new(server)))?;
            let first = self.gpus.len();
            for ordinal in 0..group.gpus {
                for instance in 0..devices {
                    let whole = DeviceId::gpu(server, ordinal);
                    let id = if devices > 1 || share < Fraction::ONE { whole.instance(instance) } else { whole };
                    self.attach(id, group.kind, share)?;
                }
            }
            self.servers.push(first..self.gpus.len());
        }
        Ok(())
    }

    fn attach(&mut self, id: DeviceId, kind: &'static GpuType, share: Fraction) -> Result<(), SimulationError> {
        let memory = self.setup.sharing.memory(kind.memory);
        let mode = self.setup.sharing.mode();
        self.tell(Event::GpuAttached(DeviceSpec { id, memory, mode }))?;
        let mut monitor = Monitor::default();
        monitor.change(Time::ZERO, super::telemetry::Levels::default(), self.rule.length);
        self.changed.push(self.gpus.len());
        self.gpus.push(Gpu {
            id,
            kind,
            mode,
            usable: memory - MiB(kind.reserved().0 * memory.0 / kind.memory.0),
            used: MiB::ZERO,
            share: share.get(),
            host: 1.0,
            lost: false,
            residents: Vec::new(),
            monitor,
            meter: Meter::new(kind.idle_watts * share.get(), self.setup.timeline),
            dirty: true,
            processes_changed: false,
            settles_at: None,
        });
        self.publish()
    }

    pub(super) fn run(mut self) -> Result<Run, SimulationError> {
        let mut submitted = 0;
        while self.over < self.records.len() {
            let arrival = self.records.get(submitted).map(|job| job.submitted);
            let wakeup = self.decider.scheduler().next_wakeup().map(|wakeup| wakeup.max(self.now));
            let Some(next) = [arrival, wakeup, self.agenda.next()].into_iter().flatten().min() else { break };
            self.now = next;
            while let Some(item) = self.agenda.due(next) {
                self.happen(item)?;
            }
            self.publish()?;
            while self.records.get(submitted).is_some_and(|job| job.submitted <= next) {
                self.submit(submitted)?;
                submitted += 1;
            }
            if wakeup.is_some_and(|wakeup| wakeup <= next) {
                self.tell(Event::Tick)?;
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Run {
        let ended = self.ended;
        self.gpus.iter_mut().for_each(|gpu| gpu.meter.advance(ended));
        let gpu = |gpu: Gpu| GpuRecord { kind: gpu.kind, totals: gpu.meter.totals, moments: gpu.meter.moments.unwrap_or_default() };
        Run { jobs: self.records, gpus: self.gpus.into_iter().map(gpu).collect(), ended, events: self.events }
    }

    fn submit(&mut self, job: usize) -> Result<(), SimulationError> {
        let asked = &self.setup.trace.jobs[job];
        let workload = self.tasks[job].workload;
        let facts: &Workload = self.setup.catalogue.get(workload);
        let mut spec = self.setup.knowledge.spec(JobId(job as u64 + 1), asked.gpus, (workload, facts), self.setup.seed);
        let widest = self.setup.servers.groups.iter().map(|group| u32::from(group.gpus)).max();
        spec.may_span_servers = Some(asked.gpus) > widest;
        self.tell(Event::JobSubmitted(Box::new(spec)))
    }

    /// Tells the scheduler, and does what it wants done.
    fn tell(&mut self, event: Event) -> Result<(), SimulationError> {
        self.events += 1;
        for action in self.decider.decide(event, self.now)? {
            match action {
                Action::Launch { attempt, placement, .. } => {
                    let gpus = placement.devices.iter().map(|granted| self.gpu_place(granted.device)).collect();
                    self.launch(attempt, gpus);
                }
                Action::Signal { attempt, signal, .. } => self.signal(attempt, signal),
                Action::Requeue { .. } => {}
                Action::Finish { job, outcome } => {
                    let record = &mut self.records[job.0 as usize - 1];
                    (record.ended, record.outcome) = (Some(self.now), Some(outcome));
                    self.ended = self.now;
                    self.over += 1;
                }
            }
        }
        Ok(())
    }

    fn gpu_place(&self, device: DeviceId) -> usize {
        let (each, _) = self.setup.sharing.devices();
        let instance = device.instance.map_or(0, |instance| instance.0);
        self.servers[device.server().0 as usize].start + usize::from(device.gpu.ordinal) * usize::from(each) + usize::from(instance)
    }

    fn rank_facts(&self, job: usize, rank: usize, gpu: usize) -> &RankFacts {
        let kind = GPU_TYPES.iter().position(|kind| std::ptr::eq(kind, self.gpus[gpu].kind)).unwrap_or_default();
        self.facts.get(kind, self.tasks[job].workload, rank)
    }

    fn launch(&mut self, attempt: AttemptId, gpus: Vec<usize>) {
        let job = attempt.job.0 as usize - 1;
        let draw = Draw::new(&self.setup.physics, self.setup.seed, job, attempt.number);
        // Alone, a job is as fast as its slowest rank.
        let stretch = (0..).zip(&gpus).map(|(rank, gpu)| self.rank_facts(job, rank, *gpu).stretch).fold(0.0, f64::max);
        let alone = self.tasks[job].alone * draw.run_time;
        // A short job does not spend all its time on what is not training.
        let start_up = draw.start_up.min(alone / 4.0);
        let (loading, winding_down) = (draw.loading.min(alone / 4.0), draw.winding_down.min(alone / 4.0));
        let training = alone - start_up - loading - winding_down;
        let draw = Draw { loading, winding_down, ..draw };
        let record = &mut self.records[job];
        record.alone = alone + training * (stretch - 1.0);
        record.attempts.push(AttemptRecord { launched: self.now, ended: None, gpus: gpus.clone(), verdict: None });
        self.plans += 1;
        let plan = self.plans;
        let process = Process::new(attempt, job, gpus, training, draw, plan, self.now);
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.processes.push(None);
            self.processes.len() - 1
        });
        self.processes[place] = Some(process);
        self.agenda.plan(self.now + seconds(start_up), Item::Arrive { process: place, plan });
    }

    /// A process that is told to stop does so after a second, and loses what it has done.
    fn signal(&mut self, attempt: AttemptId, _signal: Signal) {
        let of = |process: &Option<Process>| process.as_ref().is_some_and(|process| process.attempt == attempt);
        if let Some(process) = self.processes.iter().position(of)
            && let Some(plan) = self.processes[process].as_ref().map(|process| process.plan)
        {
            self.agenda.plan(self.now + Seconds::from_secs(1), Item::Gone { process, plan });
        }
    }

    fn is_current(&self, process: usize, plan: u64) -> bool {
        self.processes[process].as_ref().is_some_and(|process| process.plan == plan)
    }

    fn happen(&mut self, item: Item) -> Result<(), SimulationError> {
        match item {
            Item::Arrive { process, plan } if self.is_current(process, plan) => self.arrive(process),
            Item::Grow { process, plan } if self.is_current(process, plan) => self.grow(process),
            Item::Train { process, plan } if self.is_current(process, plan) => {
                self.enter(process, Phase::Training);
                Ok(())
            }
            Item::WindDown { process, plan } if self.processes[process].as_ref().is_some_and(|process| process.end_plan == plan) => {
                self.enter(process, Phase::WindingDown);
                Ok(())
            }
            Item::End { process, plan } if self.is_current(process, plan) => self.exit(process, Verdict::Succeeded),
            Item::Gone { process, plan } if self.is_current(process, plan) => self.exit(process, Verdict::Failed { code: 143 }),
            Item::Settle { gpu } => {
                self.gpus[gpu].settles_at = None;
                self.touch(gpu);
                Ok(())
            }
            Item::Disturb { place, begins } => self.disturb(place, begins),
            _ => Ok(()),
        }
    }

    /// A process reaches its GPUs and takes its first memory.
    fn arrive(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &self.processes[place] else { return Ok(()) };
        let (job, gpus, plan, loading) = (process.job, process.gpus.clone(), process.plan, process.draw.loading);
        for (rank, gpu) in gpus.into_iter().enumerate() {
            let facts = *self.rank_facts(job, rank, gpu);
            let who = Who::Rank { process: place, rank };
            self.gpus[gpu].residents.push(Resident { who, facts, memory: MiB::ZERO, quiet: true, slowdown: 1.0 });
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
            if let Some(resident) = self.gpus[gpu].place_of(Who::Rank { process: place, rank }) {
                self.gpus[gpu].residents[resident].quiet = phase != Phase::Training;
            }
            self.load_changed(gpu);
        }
    }

    /// A process asks for its next part of memory on all its GPUs; where that is not there, it dies.
    fn grow(&mut self, place: usize) -> Result<(), SimulationError> {
        let Some(process) = &mut self.processes[place] else { return Ok(()) };
        let first = self.setup.physics.first_memory;
        let share = first + (1.0 - first) * f64::from(process.requests) / f64::from(REQUESTS);
        let (spare, step, plan) = (process.draw.spare, process.draw.growth / f64::from(REQUESTS), process.plan);
        let last = process.requests == REQUESTS || first >= 1.0;
        process.requests += 1;
        for (rank, gpu) in process.gpus.clone().into_iter().enumerate() {
            let gpu_state = &mut self.gpus[gpu];
            let Some(resident) = gpu_state.place_of(Who::Rank { process: place, rank }) else { continue };
            let Resident { facts, memory, .. } = gpu_state.residents[resident];
            let wanted = facts.peak().share(Fraction::clamped(share));
            let needed = wanted.share(Fraction::clamped(1.0 - spare));
            let grant = (wanted - memory).min(gpu_state.free());
            if memory + grant < needed {
                return self.exit(place, Verdict::OutOfMemory);
            }
            gpu_state.take(resident, grant);
            gpu_state.processes_changed = true;
            self.touch(gpu);
        }
        if !last {
            self.agenda.plan(self.now + seconds(step), Item::Grow { process: place, plan });
        }
        Ok(())
    }

    fn exit(&mut self, place: usize, verdict: Verdict) -> Result<(), SimulationError> {
        let Some(process) = self.processes[place].take() else { return Ok(()) };
        self.free_places.push(place);
        for (rank, gpu) in process.gpus.iter().enumerate() {
            self.gpus[*gpu].remove(Who::Rank { process: place, rank });
            self.load_changed(*gpu);
        }
        if let Some(attempt) = self.records[process.job].attempts.last_mut() {
            (attempt.ended, attempt.verdict) = (Some(self.now), Some(verdict.clone()));
        }
        self.tell(Event::JobExited { attempt: process.attempt, verdict })
    }

    fn disturb(&mut self, place: usize, begins: bool) -> Result<(), SimulationError> {
        let gpu = self.setup.disturbances[place].gpu();
        let device = self.gpus[gpu].id;
        match (&self.setup.disturbances[place], begins) {
            (Disturbance::Foreign { memory, smact, .. }, true) => {
                let profile =
                    RankProfile { peak: *memory, smact: *smact, smocc: *smact, drama: Fraction::ZERO, utilisation: *smact, power: None };
                let facts = RankFacts::new(self.setup.interference, &stranger(profile), &profile, self.gpus[gpu].kind, Fraction::ONE);
                let memory = (*memory).min(self.gpus[gpu].free());
                self.gpus[gpu].residents.push(Resident { who: Who::Foreign(place), facts, memory: MiB::ZERO, quiet: false, slowdown: 1.0 });
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

    /// Who is on a GPU has changed: speeds, counters and power follow, on the whole server where its host is crowded.
    fn load_changed(&mut self, gpu: usize) {
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
    fn touch(&mut self, gpu: usize) {
        if !self.gpus[gpu].dirty {
            self.gpus[gpu].dirty = true;
            self.changed.push(gpu);
        }
    }

    /// Shows the scheduler what the monitor sees of the GPUs that changed.
    fn publish(&mut self) -> Result<(), SimulationError> {
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

fn seconds(value: f64) -> Seconds {
    Seconds::new(value).unwrap_or_default()
}

/// A process from outside, of which only its counters are known.
fn stranger(profile: RankProfile) -> Workload {
    Workload {
        name: String::new(),
        model: String::new(),
        dataset: String::new(),
        batch: None,
        epochs: None,
        family: String::new(),
        seconds: Seconds::ZERO,
        ranks: vec![profile],
        aliases: Vec::new(),
        source: String::new(),
        note: None,
    }
}
