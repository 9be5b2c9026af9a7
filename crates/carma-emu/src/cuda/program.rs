//! A program on GPUs: it takes memory, runs, and progresses at the speed that its neighbours allow.

use carma_core::Fraction;
use carma_sim::{RankFacts, RankProfile, Workload, slice_slowdown};

use super::error::CudaError;
use super::mps::MpsConnection;
use crate::machine::Machine;
use crate::state::{ContextKind, ContextRecord, MODEL, NONE, PHYSICS, Place, State, is_open_to, started};

/// Memory of a CUDA context with the libraries of a training script, which every program needs.
const CONTEXT: u64 = 420 << 20;

/// The work of a program on one of its GPUs.
#[derive(Debug, Clone, Copy)]
pub struct Rank<'a> {
    /// Its counters and peak when alone: for a workload, those of the catalogue on the reference GPU; otherwise the values that monitors read.
    pub profile: &'a RankProfile,
    /// The workload, if it is one of the catalogue.
    pub workload: Option<&'a Workload>,
}

/// This process on its GPUs. It is removed when this is dropped, or when the process ends in any way.
#[derive(Debug)]
pub struct Program<'a> {
    machine: &'a Machine,
    places: Vec<Place>,
    pid: u32,
    born: u64,
    mps: Option<MpsConnection>,
}

impl<'a> Program<'a> {
    /// Opens a context at each place: a rank each, the first place for the first rank. As a client of MPS, if it has become one.
    pub fn attach(machine: &'a Machine, places: &[Place], ranks: &[Rank<'_>], mps: Option<MpsConnection>) -> Result<Self, CudaError> {
        if places.is_empty() {
            return Err(CudaError::NoDevice);
        }
        let pid = std::process::id();
        let program = Self { machine, places: places.to_vec(), pid, born: started(pid).unwrap_or_default(), mps };
        machine.with(|state| {
            for (ordinal, (place, rank)) in places.iter().zip(ranks).enumerate() {
                state.make_room(*place, pid, CONTEXT);
                let context = context(state, *place, rank, (ordinal, program.mps.as_ref()), pid)?;
                state.attach(context, program.born).map_err(|_| CudaError::Other(2))?;
            }
            Ok::<(), CudaError>(())
        })??;
        Ok(program)
    }

    /// Sets the memory held on one of its GPUs, by its own number for it: allocates or frees the difference.
    pub fn hold(&self, ordinal: usize, bytes: u64) -> Result<(), CudaError> {
        self.with(ordinal, |state, place, index| {
            let held = state.contexts()[index].bytes;
            let wanted = bytes.saturating_sub(held);
            let room = state.limit_room(place, self.pid).min(state.contexts()[index].limit.saturating_sub(held));
            if wanted <= room {
                state.make_room(place, self.pid, wanted);
            }
            let memory = state.memory(place);
            let free = memory.free().min(room);
            if wanted > free {
                let others = state.contexts_at(place).filter(|other| other.pid != self.pid && other.bytes > 0);
                let processes = others.map(|other| (other.pid, other.bytes)).collect();
                return Err(CudaError::OutOfMemory { ordinal, wanted, total: memory.total - memory.reserved, free, held, processes });
            }
            state.contexts_mut()[index].bytes = bytes.max(CONTEXT.min(held));
            Ok(())
        })
    }

    /// Bytes held on one of its GPUs.
    pub fn held(&self, ordinal: usize) -> Result<u64, CudaError> {
        self.with(ordinal, |state, _, index| Ok(state.contexts()[index].bytes))
    }

    /// Emulated seconds since the machine was made, and how many pass per real second.
    pub fn clock(&self) -> Result<(f64, f64), CudaError> {
        Ok(self.machine.clock()?)
    }

    /// The product's name of one of its GPUs, and the memory that processes can have there in bytes.
    pub fn device(&self, ordinal: usize) -> Result<(&'static str, u64), CudaError> {
        self.with(ordinal, |state, place, _| {
            let memory = state.memory(place);
            Ok((state.profile(place.gpu).facts.product.as_str(), memory.total - memory.reserved))
        })
    }

    /// Starts or stops kernels, on all its GPUs.
    pub fn run(&self, busy: bool) -> Result<(), CudaError> {
        self.check_process()?;
        self.machine.with(|state| {
            let mine = state.contexts_mut().iter_mut().filter(|context| self.is_mine(context));
            mine.for_each(|context| context.busy = u32::from(busy));
        })?;
        Ok(())
    }

    /// Seconds of work done so far and the present rate, in the catalogue's unit of work: emulated seconds.
    pub fn work(&self) -> Result<(f64, f64), CudaError> {
        self.with(0, |state, _, index| {
            let context = &state.contexts()[index];
            Ok((context.work, context.speed))
        })
    }

    /// Runs a closure on one of the contexts, unless it has met an error since.
    fn with<R>(&self, ordinal: usize, act: impl FnOnce(&mut State<'_>, Place, usize) -> Result<R, CudaError>) -> Result<R, CudaError> {
        self.check_process()?;
        let place = *self.places.get(ordinal).ok_or(CudaError::NoDevice)?;
        self.machine.with(|state| {
            // Or it does not exist: the machine was removed, and another was made.
            if self.places.iter().any(|place| state.gpus.get(place.gpu).is_none_or(|gpu| gpu.lost != 0)) {
                return Err(CudaError::Lost);
            }
            // An error on any of its GPUs ends the program.
            if let Some(faulty) = state.contexts().iter().find(|context| self.is_mine(context) && context.fault != 0) {
                return Err(CudaError::from_code(faulty.fault));
            }
            let instance = place.instance.map_or(NONE, |instance| instance as u32);
            let here = |context: &ContextRecord| self.is_mine(context) && (context.gpu, context.instance) == (place.gpu as u32, instance);
            let index = state.contexts().iter().position(here).ok_or(CudaError::Lost)?;
            act(state, place, index)
        })?
    }

    /// A forked child has a useless copy of this.
    fn check_process(&self) -> Result<(), CudaError> {
        if std::process::id() == self.pid { Ok(()) } else { Err(CudaError::Forked) }
    }

    const fn is_mine(&self, context: &ContextRecord) -> bool {
        context.pid == self.pid && context.born == self.born
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // A forked child must not detach its parent.
        if self.check_process().is_ok() {
            let _ = self.machine.with(|state| state.detach(|context| self.is_mine(context)));
        }
    }
}

/// The context that a rank of this process opens.
pub(super) fn context(
    state: &State<'_>,
    place: Place,
    rank: &Rank<'_>,
    (ordinal, mps): (usize, Option<&MpsConnection>),
    pid: u32,
) -> Result<ContextRecord, CudaError> {
    // A visible device may have disappeared.
    if !state.places().contains(&place) || state.gpus[place.gpu].lost != 0 {
        return Err(CudaError::NoDevice);
    }
    // On the GPU, the process of a client is its server.
    let server = |mps: &MpsConnection| {
        state.contexts_at(place).any(|context| context.pid == mps.server() && context.kind() == ContextKind::MpsServer)
    };
    match mps {
        Some(mps) if !server(mps) => return Err(CudaError::MpsServerGone),
        None if !is_open_to(state, place, pid) => return Err(CudaError::Unavailable),
        _ => {}
    }
    let limit = mps.map_or(u64::MAX, |mps| mps.memory(ordinal));
    if state.memory(place).free() < CONTEXT || limit.min(state.limit_room(place, pid)) < CONTEXT {
        return Err(CudaError::NoContext);
    }
    let profile = state.profile(place.gpu);
    let share = place.instance.map_or(Fraction::ONE, |instance| profile.share(state.instance_profile(place.gpu, instance)));
    let facts = RankFacts::new(&MODEL, rank.workload, rank.profile, profile.kind, share);
    // A client with a part of the multiprocessors is as fast as on an instance of that size, and leaves the rest to the others.
    let threads = mps.map_or(100, MpsConnection::threads).clamp(1, 100);
    let part = Fraction::clamped(f64::from(threads) / 100.0);
    let slice = if part < Fraction::ONE { slice_slowdown(&facts.profile, part) } else { 1.0 };
    // Monitors read less SMACT and SMOCC than a catalogue has. The counters of a process without a workload are the values to be read.
    let (here, reading) = if rank.workload.is_some() { (&facts.profile, PHYSICS.reading) } else { (rank.profile, 1.0) };
    let counters = [here.smact.get() * reading, here.smocc.get() * reading, here.drama.get(), here.utilisation.get()];
    let kind = if mps.is_some() { ContextKind::MpsClient } else { ContextKind::Compute };
    Ok(ContextRecord {
        pid,
        gpu: place.gpu as u32,
        instance: place.instance.map_or(NONE, |instance| instance as u32),
        bytes: CONTEXT,
        limit,
        server: mps.map_or(0, MpsConnection::server),
        threads,
        counters: counters.map(|counter| counter / slice),
        watts: facts.watts / slice,
        pressure: facts.interference.pressure / slice,
        sensitivity: facts.interference.sensitivity,
        stretch: facts.stretch * slice,
        ..ContextRecord::new(kind)
    })
}
