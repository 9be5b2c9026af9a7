//! What is kept in shared memory, byte for byte.

use std::fmt;

use bytemuck::{Pod, Zeroable};

/// The number of a layout; another layout gets another number.
pub(super) const LAYOUT: u32 = 3;
/// The first bytes of a state.
pub(super) const MAGIC: [u8; 8] = *b"carmaemu";
/// Most MIG instances of a GPU.
pub const INSTANCES: usize = 7;
/// Stands for no instance, or any GPU.
pub const NONE: u32 = u32::MAX;

/// A short text of fixed room.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The text, cut where there is no more room.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        let most = text.len().min(N - 1);
        bytes[..most].copy_from_slice(&text.as_bytes()[..most]);
        Self(bytes)
    }

    /// What it says.
    pub fn get(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.get(), f)
    }
}

/// What a state's file begins with; two images of the state follow.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Lead {
    pub(super) magic: [u8; 8],
    pub(super) layout: u32,
    pub(super) gpus: u32,
    /// The image that counts, the first or the second.
    pub(super) current: u64,
    /// Driver events so far, where it can be seen without the lock.
    pub(super) events: u64,
}

/// The state as a whole.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// Contexts in use; they are the first of the table.
    pub contexts: u32,
    pub(super) changed: u32,
    /// Emulated seconds a second.
    pub speed: f64,
    /// When the machine was made, on the system's monotonic clock, in seconds.
    pub born: f64,
    /// Emulated seconds since then up to which everything is counted.
    pub now: f64,
    /// When processes were last looked for that have gone, on the same clock as `born`.
    pub(super) swept: f64,
    /// How much longer every step takes because of how many run on the host.
    pub host: f64,
    /// Driver events so far; the last of them are in the ring.
    pub events: u64,
    /// For what needs a number of its own.
    pub serial: u64,
}

/// What a GPU or an instance does, now and so far.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Engine {
    /// SMACT, SMOCC, DRAMA and GPU utilisation now.
    pub levels: [f64; 4],
    /// The same times emulated seconds, since the beginning.
    pub level_seconds: [f64; 4],
    /// Power now.
    pub watts: f64,
    /// Energy since the beginning.
    pub joules: f64,
}

/// A MIG instance: a GPU instance with one compute instance that has all of it.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct InstanceRecord {
    /// Whether it is there.
    pub used: u32,
    /// The GPU instance's number, unique within its GPU.
    pub id: u32,
    /// The place of its kind among the GPU's MIG profiles.
    pub profile: u32,
    /// The memory slice it begins at.
    pub start: u32,
    /// Whether it has its compute instance, without which nothing can run.
    pub computes: u32,
    pub(super) padding: u32,
    /// Its UUID, `MIG-...`.
    pub uuid: Text<48>,
    /// What it does.
    pub engine: Engine,
}

/// A GPU.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct GpuRecord {
    /// Its UUID, `GPU-...`.
    pub uuid: Text<48>,
    /// The place of its kind in [`crate::Profile::all`].
    pub profile: u32,
    /// Its PCI bus.
    pub bus: u32,
    /// NVML's number of the compute mode.
    pub compute_mode: u32,
    /// Whether the driver stays loaded without clients.
    pub persistence: u32,
    /// Whether MIG is on.
    pub mig: u32,
    /// Whether it is lost.
    pub lost: u32,
    /// Whether a display is attached to it.
    pub display: u32,
    /// The power limit in milliwatts.
    pub power_limit: u32,
    /// Errors its memory corrected.
    pub ecc_corrected: u64,
    /// And those it could not.
    pub ecc_uncorrected: u64,
    /// Memory in use that belongs to no process.
    pub leaked: u64,
    /// What it does.
    pub engine: Engine,
    /// Its MIG instances.
    pub instances: [InstanceRecord; INSTANCES],
}

/// How a process uses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// CUDA.
    Compute,
    /// A display's.
    Graphics,
    /// CUDA, through an MPS server.
    MpsClient,
    /// An MPS server itself.
    MpsServer,
}

/// A process on a GPU or an instance of one.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ContextRecord {
    /// The process.
    pub pid: u32,
    /// The GPU's place.
    pub gpu: u32,
    /// The place of the instance, or [`NONE`].
    pub instance: u32,
    /// See [`ContextRecord::kind`].
    pub kind: u32,
    /// When the process was started, in the kernel's clock ticks: numbers of processes are used again.
    pub born: u64,
    /// Memory in bytes.
    pub bytes: u64,
    /// The most it may take, in bytes.
    pub limit: u64,
    /// The process number of the MPS server it is a client of; 0: none.
    pub server: u32,
    /// Whether kernels run; else it holds memory and does little.
    pub busy: u32,
    /// What ended it for its process: a CUDA error number; 0: nothing.
    pub fault: u32,
    /// The share of the multiprocessors it may use, in percent.
    pub threads: u32,
    /// Whether its process is stopped by a signal: it keeps its memory, and runs nothing.
    pub halted: u64,
    /// Counters when alone, as monitors read them: SMACT, SMOCC, DRAMA, GPU utilisation.
    pub counters: [f64; 4],
    /// Power above idle when alone.
    pub watts: f64,
    /// What it does to others.
    pub pressure: f64,
    /// What others do to it.
    pub sensitivity: f64,
    /// How much longer its steps take here than in the catalogue, when alone.
    pub stretch: f64,
    /// How much it does of what it does alone.
    pub activity: f64,
    /// Seconds of work a second, as a catalogue counts work.
    pub speed: f64,
    /// Work done so far.
    pub work: f64,
}

/// Something the driver reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct EventRecord {
    /// The GPU's place.
    pub gpu: u32,
    /// The place of the instance, or [`NONE`].
    pub instance: u32,
    /// NVML's bit for the type of event.
    pub kind: u64,
    /// What it carries: the number of an Xid.
    pub data: u64,
}

/// A driver call that goes wrong on purpose.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct CallFault {
    /// Whether it is set.
    pub used: u32,
    /// The GPU's place, or [`NONE`] for any.
    pub gpu: u32,
    /// What the call answers, as NVML's number; 0: it hangs for as long as this is set.
    pub code: u32,
    pub(super) padding: u32,
    /// The call's name, or nothing for any.
    pub call: Text<56>,
}

impl GpuRecord {
    /// Its PCI address, as the driver writes it.
    pub fn bus_id(&self) -> String {
        format!("00000000:{:02X}:00.0", self.bus)
    }
}

impl ContextRecord {
    /// How it uses the GPU.
    pub const fn kind(&self) -> ContextKind {
        match self.kind {
            0 => ContextKind::Compute,
            1 => ContextKind::Graphics,
            2 => ContextKind::MpsClient,
            _ => ContextKind::MpsServer,
        }
    }

    /// One that does nothing yet.
    pub fn new(kind: ContextKind) -> Self {
        Self { kind: kind as u32, instance: NONE, limit: u64::MAX, threads: 100, stretch: 1.0, ..Self::zeroed() }
    }
}
