//! The state of a machine's GPUs in shared memory.

mod advance;
mod contention;
mod file;
mod image;
mod limits;
mod mig;
mod records;
mod uuid;
mod visible;

pub use carma_gpu::process_started as started;
pub(crate) use contention::{MODEL, PHYSICS, THROTTLED};
pub use file::{SharedState, StateError};
pub use limits::{MemoryLimits, NO_HARD_LIMIT};
pub use mig::MigError;
pub use records::{
    CallFault, ContextKind, ContextRecord, Engine, EventRecord, GpuRecord, Header, INSTANCES, InstanceRecord, LimitRecord, MAX_GROUP, NONE,
    Text,
};
pub(crate) use uuid::uuid;
pub(crate) use visible::is_open_to;
pub use visible::visible;

use crate::profile::{MigProfile, Profile};

/// Limit of processes on GPUs; one that uses several GPUs counts for each.
const CONTEXTS: usize = 8192;
/// Driver events kept.
const EVENTS: usize = 256;
/// Limit of simultaneous faults of driver calls.
const FAULTS: usize = 32;
/// Limit of control groups with memory limits; one with limits on several GPUs counts for each.
const LIMITS: usize = 128;

/// The system's monotonic clock in seconds: the same for all processes.
pub(crate) fn clock() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// The locked state.
#[derive(Debug)]
pub struct State<'a> {
    /// The whole of it.
    pub header: &'a mut Header,
    /// The GPUs, in PCI order.
    pub gpus: &'a mut [GpuRecord],
    table: &'a mut [ContextRecord],
    ring: &'a mut [EventRecord],
    /// Driver calls that go wrong on purpose.
    pub faults: &'a mut [CallFault],
    limits: &'a mut [LimitRecord],
}

/// A place for processes: a GPU, or an instance of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The GPU's place.
    pub gpu: usize,
    /// The place of the instance.
    pub instance: Option<usize>,
}

impl Place {
    /// A whole GPU.
    pub const fn gpu(gpu: usize) -> Self {
        Self { gpu, instance: None }
    }
}

/// Memory of a GPU or an instance, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The total.
    pub total: u64,
    /// The driver's reserve.
    pub reserved: u64,
    /// In use, without the driver's reserve.
    pub used: u64,
}

impl Memory {
    /// Memory that a process can still allocate.
    pub const fn free(self) -> u64 {
        self.total.saturating_sub(self.reserved).saturating_sub(self.used)
    }
}

/// The table has no room for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFull;

impl State<'_> {
    /// Processes on GPUs.
    pub fn contexts(&self) -> &[ContextRecord] {
        &self.table[..self.header.contexts as usize]
    }

    /// The same, mutable; the consequences of a change are calculated afterwards.
    pub fn contexts_mut(&mut self) -> &mut [ContextRecord] {
        self.header.changed = 1;
        &mut self.table[..self.header.contexts as usize]
    }

    /// Processes at a place; for a GPU, including those on its instances.
    pub fn contexts_at(&self, place: Place) -> impl Iterator<Item = &ContextRecord> {
        self.contexts().iter().filter(move |context| {
            context.gpu as usize == place.gpu && place.instance.is_none_or(|instance| context.instance as usize == instance)
        })
    }

    /// A process arrives. `born` is when it was started, by [`started`].
    pub fn attach(&mut self, mut context: ContextRecord, born: u64) -> Result<(), TableFull> {
        let place = self.header.contexts as usize;
        context.born = born;
        *self.table.get_mut(place).ok_or(TableFull)? = context;
        self.header.contexts += 1;
        self.header.changed = 1;
        Ok(())
    }

    /// Removes the processes that match.
    pub fn detach(&mut self, gone: impl Fn(&ContextRecord) -> bool) {
        let mut place = 0;
        while place < self.header.contexts as usize {
            if gone(&self.table[place]) {
                let last = self.header.contexts as usize - 1;
                self.table.swap(place, last);
                self.header.contexts -= 1;
                self.header.changed = 1;
            } else {
                place += 1;
            }
        }
    }

    /// The data sheet of a GPU.
    pub fn profile(&self, gpu: usize) -> &'static Profile {
        &Profile::all()[self.gpus[gpu].profile as usize % Profile::all().len()]
    }

    /// The profile of an instance.
    pub fn instance_profile(&self, gpu: usize, instance: usize) -> &'static MigProfile {
        let profiles = &self.profile(gpu).mig;
        &profiles[self.gpus[gpu].instances[instance].profile as usize % profiles.len().max(1)]
    }

    /// Memory at a place.
    pub fn memory(&self, place: Place) -> Memory {
        let profile = self.profile(place.gpu);
        let used: u64 = self.contexts_at(place).map(|context| context.bytes).sum();
        match place.instance {
            Some(instance) => Memory { total: self.instance_profile(place.gpu, instance).memory << 20, reserved: 0, used },
            None => Memory {
                total: profile.kind.memory.0 << 20,
                reserved: profile.reserved().0 << 20,
                used: used + self.gpus[place.gpu].leaked,
            },
        }
    }

    /// The activity at a place.
    pub fn engine(&self, place: Place) -> &Engine {
        let gpu = &self.gpus[place.gpu];
        place.instance.map_or(&gpu.engine, |instance| &gpu.instances[instance].engine)
    }

    /// All places where processes can run now.
    pub fn places(&self) -> Vec<Place> {
        let of = |gpu: usize| {
            let record = &self.gpus[gpu];
            let whole = (record.mig == 0).then_some(Place::gpu(gpu));
            let ready = move |instance: &usize| record.mig != 0 && record.instances[*instance].computes != 0;
            whole.into_iter().chain((0..INSTANCES).filter(ready).map(move |instance| Place { gpu, instance: Some(instance) }))
        };
        (0..self.gpus.len()).flat_map(of).collect()
    }

    /// The driver reports something.
    pub fn report(&mut self, event: EventRecord) {
        self.ring[self.header.events as usize % EVENTS] = event;
        self.header.events += 1;
    }

    /// The first event not before this number that is still kept, with its number.
    pub fn event_from(&self, number: u64) -> Option<(u64, EventRecord)> {
        let first = number.max(self.header.events.saturating_sub(EVENTS as u64));
        (first < self.header.events).then(|| (first, self.ring[first as usize % EVENTS]))
    }

    /// A number that was not used before.
    pub fn next_serial(&mut self) -> u64 {
        self.header.serial += 1;
        self.header.serial
    }

    /// Marks a change of GPUs or their instances; its consequences are calculated afterwards.
    pub fn touch(&mut self) {
        self.header.changed = 1;
    }
}
