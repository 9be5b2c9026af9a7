//! The simulation state: servers, jobs, and the event loop.

use std::collections::HashMap;

use carma_core::{
    Action, Config, DeviceId, DeviceSpec, Event, Fraction, Interference, JobId, MiB, PowerRange, Seconds, ServerId, ServerSpec,
    SharingMode, Time, UserId, Watts, WindowRule, Wording,
};

use super::Simulation;
use super::agenda::{Agenda, Item};
use super::chance::{Chance, Purpose};
use super::driver::{Decider, SimulationError};
use super::facts::{FactTable, RankFacts};
use super::gpu::Gpu;
use super::meter::Meter;
use super::process::{Process, Training};
use super::record::{GpuRecord, JobRecord, Run};
use super::switch::Switch;
use super::telemetry::{Levels, Monitor};
use crate::catalogue::{Workload, WorkloadId};
use crate::hardware::{GpuType, Sharing};

/// A job of the trace, ready to be simulated.
pub(super) struct Task {
    pub(super) workload: WorkloadId,
    /// Its time alone on the GPU it was measured on.
    pub(super) alone: f64,
    /// Its progress at its last checkpoint.
    pub(super) saved: Option<Training>,
}

/// Indices of a server's devices.
pub(super) struct ServerDevices {
    pub(super) devices: Vec<usize>,
    /// Number of GPUs.
    pub(super) gpus: f64,
}

pub(super) struct World<'a, D> {
    pub(super) setup: &'a Simulation<'a>,
    pub(super) decider: D,
    pub(super) facts: FactTable,
    pub(super) rule: WindowRule,
    /// Whether the monitor reports power and processes; left out if no policy uses them.
    pub(super) watches_power: bool,
    pub(super) watches_idle: bool,
    pub(super) now: Time,
    pub(super) agenda: Agenda,
    pub(super) tasks: Vec<Task>,
    /// Interference that the scheduler learned for workloads that ended: a manager keeps it with their history.
    pub(super) learned: HashMap<WorkloadId, Interference>,
    /// User of each job.
    users: Vec<UserId>,
    pub(super) gpus: Vec<Gpu>,
    pub(super) servers: Vec<ServerDevices>,
    /// Index of each device.
    pub(super) places: HashMap<DeviceId, usize>,
    /// Mode switches of GPUs, including finished ones.
    pub(super) switches: Vec<Switch>,
    pub(super) processes: Vec<Option<Process>>,
    pub(super) free_places: Vec<usize>,
    pub(super) plans: u64,
    /// GPUs whose telemetry is due before time advances.
    pub(super) changed: Vec<usize>,
    pub(super) noise: Chance,
    pub(super) records: Vec<JobRecord>,
    pub(super) over: usize,
    pub(super) ended: Time,
    pub(super) events: u64,
}

impl<'a, D: Decider> World<'a, D> {
    pub(super) fn new(setup: &'a Simulation<'a>, decider: D) -> Result<Self, SimulationError> {
        let mut kinds = setup.servers.groups.iter().map(|group| group.kind);
        if let (Sharing::Mig(_), Some(kind)) = (setup.sharing, kinds.find(|kind| !kind.has_seven_slices())) {
            return Err(SimulationError::NoMig(kind.name));
        }
        let task = |job: &crate::TraceJob| {
            let workload = job.workload.ok_or_else(|| SimulationError::Unmapped(job.name.clone()))?;
            Ok(Task { workload, alone: job.duration.unwrap_or(setup.catalogue.get(workload).seconds).get(), saved: None })
        };
        let tasks = setup.trace.jobs.iter().map(task).collect::<Result<Vec<_>, SimulationError>>()?;
        let record = |job: &crate::TraceJob| JobRecord {
            submitted: Time::ZERO + job.submitted,
            alone: 0.0,
            attempts: Vec::new(),
            ended: None,
            outcome: None,
            waits_for: None,
        };
        let Config { window, power, idle_jobs, modes, .. } = decider.scheduler().config().clone();
        let may_be_cut = modes.allows(SharingMode::Mig);
        let begun = Time::ZERO + setup.trace.jobs.first().map_or(Seconds::ZERO, |job| job.submitted);
        let mut world = Self {
            facts: FactTable::new(setup.catalogue, setup.interference, setup.servers, setup.sharing, may_be_cut),
            watches_power: power.budget.is_some(),
            watches_idle: idle_jobs.flag_after.or(idle_jobs.lend_after).is_some(),
            decider,
            rule: window.rule(),
            now: begun,
            agenda: Agenda::default(),
            tasks,
            learned: HashMap::new(),
            users: setup.trace.users(),
            gpus: Vec::new(),
            servers: Vec::new(),
            places: HashMap::new(),
            switches: Vec::new(),
            processes: Vec::new(),
            free_places: Vec::new(),
            plans: 0,
            changed: Vec::new(),
            noise: Chance::new(setup.seed, Purpose::Monitor, 0, 0),
            records: setup.trace.jobs.iter().map(record).collect(),
            over: 0,
            ended: begun,
            events: 0,
            setup,
        };
        world.attach_servers()?;
        for (place, disturbance) in setup.disturbances.iter().enumerate() {
            if disturbance.gpu() >= setup.servers.gpus() as usize {
                return Err(SimulationError::NoGpu(disturbance.gpu()));
            }
            let (from, until) = disturbance.span();
            world.agenda.plan(from.max(begun), Item::Disturb { place, begins: true });
            if let Some(until) = until {
                world.agenda.plan(until.max(begun), Item::Disturb { place, begins: false });
            }
        }
        Ok(world)
    }

    /// Attaches the servers. The monitor has already observed idle GPUs for a while when the first job comes.
    fn attach_servers(&mut self) -> Result<(), SimulationError> {
        let groups = self.setup.servers.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.servers as usize));
        let sharing = self.setup.sharing;
        let (devices, share) = sharing.devices();
        // The driver enforces limits only if requested: the published figures are from drivers without limits.
        let limits_memory = self.decider.scheduler().config().enforce.memory.is_some();
        for (server, group) in (0..).map(ServerId).zip(groups) {
            self.send(Event::ServerAttached(ServerSpec::new(server)))?;
            self.servers.push(ServerDevices { devices: Vec::new(), gpus: f64::from(group.gpus) });
            for ordinal in 0..group.gpus {
                for instance in 0..devices {
                    let whole = DeviceId::gpu(server, ordinal);
                    let id = if matches!(self.setup.sharing, Sharing::Mig(_)) { whole.instance(instance) } else { whole };
                    let spec = DeviceSpec { mode: sharing.mode(), limits_memory, ..DeviceSpec::new(id, sharing.memory(group.kind.memory)) };
                    self.attach(&spec, group.kind, share, 1.0 / f64::from(devices), None)?;
                }
            }
        }
        Ok(())
    }

    /// Attaches a device with this share of its GPU's SMs and idle power; or an instance, if its GPU was partitioned.
    pub(super) fn attach(
        &mut self,
        spec: &DeviceSpec,
        kind: &'static GpuType,
        slices: Fraction,
        share: f64,
        whole: Option<usize>,
    ) -> Result<(), SimulationError> {
        let DeviceSpec { id, memory, mode, .. } = *spec;
        // Instances share their GPU's idle power.
        let power = PowerRange { idle: Watts(kind.idle_watts * share), limit: Watts(kind.limit_watts * share) };
        self.places.insert(id, self.gpus.len());
        self.servers[id.server().0 as usize].devices.push(self.gpus.len());
        let mut monitor = Monitor::default();
        monitor.change(Time::ZERO, Levels::default(), self.rule.length);
        self.changed.push(self.gpus.len());
        self.gpus.push(Gpu {
            id,
            kind,
            kind_place: self.facts.kind_place(kind, slices),
            mode,
            usable: memory - MiB(kind.reserved().0 * memory.0 / kind.memory.0),
            used: MiB::ZERO,
            share,
            slices,
            whole,
            instances: None,
            host: 1.0,
            cap: None,
            throttling: 1.0,
            removed: false,
            losses: 0,
            residents: Vec::new(),
            monitor,
            meter: Meter::new(self.now, kind.idle_watts * share, self.setup.timeline),
            dirty: true,
            processes_changed: false,
            settles_at: None,
        });
        // The scheduler may use it at once, so it must exist before the event is sent.
        self.send(Event::GpuAttached(DeviceSpec { power: Some(power), ..*spec }))?;
        self.publish()
    }

    /// Runs until all jobs have ended, and calls `over` after each.
    pub(super) fn run(mut self, over: &mut dyn FnMut()) -> Result<Run, SimulationError> {
        let (mut submitted, mut reported) = (0, 0);
        while self.over < self.records.len() {
            (reported..self.over).for_each(|_| over());
            reported = self.over;
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
                self.send(Event::Tick)?;
            }
        }
        // If some jobs can never end, the run ends at the last event.
        if self.over < self.records.len() {
            self.ended = self.now;
            let scheduler = self.decider.scheduler();
            for (id, record) in (1..).map(JobId).zip(&mut self.records).filter(|(_, record)| record.ended.is_none()) {
                record.waits_for = scheduler.explain(id).ok().map(|explanation| explanation.summary(Wording::PLAIN));
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Run {
        let ended = self.ended;
        self.gpus.iter_mut().for_each(|gpu| gpu.meter.advance(ended));
        let memory = |kind: &GpuType| self.setup.sharing.memory(kind.memory);
        let gpu = |gpu: Gpu| GpuRecord {
            kind: gpu.kind,
            memory: memory(gpu.kind),
            totals: gpu.meter.totals,
            moments: gpu.meter.moments.unwrap_or_default(),
        };
        Run {
            jobs: self.records,
            gpus: self.gpus.into_iter().filter(|gpu| gpu.whole.is_none()).map(gpu).collect(),
            ended,
            events: self.events,
        }
    }

    fn submit(&mut self, job: usize) -> Result<(), SimulationError> {
        let submitted = &self.setup.trace.jobs[job];
        let workload = self.tasks[job].workload;
        let facts: &Workload = self.setup.catalogue.get(workload);
        let by_rank = self.decider.scheduler().config().mapping.policy.predicts() && facts.ranks.len() == submitted.gpus as usize;
        let (id, alone, seed) = (JobId(job as u64 + 1), self.tasks[job].alone, self.setup.seed);
        let mut spec = self.setup.knowledge.spec(id, submitted.gpus, (workload, facts), (alone, by_rank), seed);
        let widest = self.setup.servers.groups.iter().map(|group| u32::from(group.gpus)).max();
        spec.interference = self.learned.get(&workload).copied().unwrap_or_default();
        spec.may_span_servers = Some(submitted.gpus) > widest;
        spec.priority = self.setup.knowledge.priorities.get(job).copied().unwrap_or(spec.priority);
        if submitted.owner.is_some() {
            spec.user = self.users[job];
        }
        self.send(Event::JobSubmitted(Box::new(spec)))
    }

    /// Sends an event to the scheduler, and executes its actions.
    pub(super) fn send(&mut self, event: Event) -> Result<(), SimulationError> {
        self.events += 1;
        for action in self.decider.decide(event, self.now)? {
            match action {
                Action::Launch { attempt, placement, .. } => {
                    let gpus = placement.devices.iter().map(|granted| self.gpu_place(granted.device)).collect();
                    self.launch(attempt, gpus);
                }
                Action::Signal { attempt, signal, .. } => self.stop(attempt, signal),
                Action::LimitPower { device, limit } => self.limit_power(device, limit)?,
                Action::Requeue { .. } | Action::Idle { .. } | Action::Stall { .. } => {}
                Action::SwitchMode { device, to, .. } => self.switch(device, to),
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

    /// A GPU accepts any limit, and confirms it.
    fn limit_power(&mut self, device: DeviceId, limit: Option<Watts>) -> Result<(), SimulationError> {
        let place = self.gpu_place(device);
        self.gpus[place].cap = limit.map(|limit| limit.0);
        self.load_changed(place);
        self.send(Event::PowerLimited { device, limit })
    }

    pub(super) fn gpu_place(&self, device: DeviceId) -> usize {
        self.places.get(&device).copied().unwrap_or_default()
    }

    pub(super) fn rank_facts(&self, job: usize, rank: usize, gpu: usize) -> &RankFacts {
        self.facts.get(self.gpus[gpu].kind_place, self.tasks[job].workload, rank)
    }
}
