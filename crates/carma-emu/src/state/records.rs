//! The records in shared memory, byte for byte.

use std::fmt;

use bytemuck::{Pod, Zeroable};

/// The version of the layout.
pub(super) const LAYOUT: u32 = 5;
/// The first bytes of a state.
pub(super) const MAGIC: [u8; 8] = *b"carmaemu";
/// Most MIG instances of a GPU.
pub const INSTANCES: usize = 7;
/// Means no instance, or any GPU.
pub const NONE: u32 = u32::MAX;

/// A short text of fixed room.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The text, truncated to the room.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        let most = text.len().min(N - 1);
        bytes[..most].copy_from_slice(&text.as_bytes()[..most]);
        Self(bytes)
    }

    /// The text.
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

/// The beginning of a state file; two images of the state follow.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileHeader {
    pub(super) magic: [u8; 8],
    pub(super) layout: u32,
    pub(super) gpus: u32,
    /// The image that counts, the first or the second.
    pub(super) current: u64,
    /// Driver events so far, readable without the lock.
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
    /// Emulated seconds since then; everything is counted up to here.
    pub now: f64,
    /// When ended processes were last checked for, on the same clock as `born`.
    pub(super) swept: f64,
    /// Slowdown of every step by the number of processes on the host.
    pub host: f64,
    /// Driver events so far; the last of them are in the ring.
    pub events: u64,
    /// Source of unique numbers.
    pub serial: u64,
    /// The number of the driver's version: see [`crate::DriverVersion`].
    pub driver: u32,
    pub(super) padding: u32,
}

/// The activity of a GPU or an instance, now and so far.
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

/// A MIG instance: a GPU instance with one compute instance that spans it.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct InstanceRecord {
    /// Whether this entry is in use.
    pub used: u32,
    /// The GPU instance's number, unique within its GPU.
    pub id: u32,
    /// The place of its kind among the GPU's MIG profiles.
    pub profile: u32,
    /// The memory slice it begins at.
    pub start: u32,
    /// Whether it has its compute instance, which is needed to run anything.
    pub computes: u32,
    pub(super) padding: u32,
    /// Its UUID, `MIG-...`.
    pub uuid: Text<48>,
    /// Its activity.
    pub engine: Engine,
}

/// A GPU.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct GpuRecord {
    /// Its UUID, `GPU-...`.
    pub uuid: Text<48>,
    /// The index of its kind in [`crate::Profile::all`].
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
    /// NVML's bits of an injected reason to run at lower clocks.
    pub throttle: u64,
    /// Errors its memory corrected.
    pub ecc_corrected: u64,
    /// And the uncorrected ones.
    pub ecc_uncorrected: u64,
    /// Memory in use that belongs to no process.
    pub leaked: u64,
    /// Its activity.
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
    /// Its memory limit in bytes.
    pub limit: u64,
    /// The process number of the MPS server it is a client of; 0: none.
    pub server: u32,
    /// Whether kernels run; otherwise it holds memory and does little.
    pub busy: u32,
    /// The CUDA error number that ended it for its process; 0: none.
    pub fault: u32,
    /// The share of the multiprocessors it may use, in percent.
    pub threads: u32,
    /// Whether a signal has stopped its process: it keeps its memory, and runs nothing.
    pub halted: u64,
    /// Counters when alone, as monitors read them: SMACT, SMOCC, DRAMA, GPU utilisation.
    pub counters: [f64; 4],
    /// Power above idle when alone.
    pub watts: f64,
    /// Its slowdown of others.
    pub pressure: f64,
    /// Its sensitivity to others.
    pub sensitivity: f64,
    /// Slowdown of its steps here against the catalogue, when alone.
    pub stretch: f64,
    /// Its activity relative to running alone.
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
    /// Its data: the number of an Xid.
    pub data: u64,
}

/// An injected fault of a driver call.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct CallFault {
    /// Whether it is set.
    pub used: u32,
    /// The GPU's place, or [`NONE`] for any.
    pub gpu: u32,
    /// The call's NVML error number; 0: it hangs while this is set.
    pub code: u32,
    pub(super) padding: u32,
    /// The call's name; empty: any call.
    pub call: Text<56>,
}

/// Most bytes of the path of a control group, with its closing zero.
pub const MAX_GROUP: usize = 224;

/// The memory limits of a control group on a GPU.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct LimitRecord {
    /// Whether it is set.
    pub used: u32,
    /// The GPU's place.
    pub gpu: u32,
    /// Guaranteed bytes.
    pub soft: u64,
    /// Bytes that are never exceeded.
    pub hard: u64,
    /// How often its processes were evicted.
    pub evictions: u64,
    /// The number of the group's folder: another group of the same name is not the same.
    pub inode: u64,
    /// The path of the group.
    pub group: Text<MAX_GROUP>,
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

    /// A context without activity.
    pub fn new(kind: ContextKind) -> Self {
        Self { kind: kind as u32, instance: NONE, limit: u64::MAX, threads: 100, stretch: 1.0, ..Self::zeroed() }
    }
}
