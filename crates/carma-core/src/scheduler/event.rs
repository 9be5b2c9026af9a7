//! Everything that can change a decision.

use serde::{Deserialize, Serialize};

use super::PastUse;
use crate::config::Settings;
use crate::device::DeviceSpec;
use crate::fleet::ServerSpec;
use crate::job::{Interference, Job, JobSpec, MemoryEstimate, PerRank, Priority, SharingClass, Stall, Verdict};
use crate::sharing::CollocationMode;
use crate::telemetry::{Sample, Utilisation, WindowSummary};
use crate::tenant::ProcessUse;
use crate::units::{Fraction, MiB, Seconds, Time, Watts};
use crate::{AttemptId, DeviceId, JobId, ServerId};

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A server is there.
    ServerAttached(ServerSpec),
    /// It is known when a server ends, or known otherwise than before.
    ServerEnds {
        /// Which.
        server: ServerId,
        /// When; unset: it does not end, as far as is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
    },
    /// A server ends soon. No jobs start there. Attempts that can checkpoint are stopped and requeued; others continue.
    ServerDraining {
        /// Which.
        server: ServerId,
    },
    /// A server without attempts is removed with its devices.
    ServerDetached {
        /// Which.
        server: ServerId,
    },
    /// A server has a device: a GPU or a MIG instance.
    GpuAttached(DeviceSpec),
    /// A device without attempts is removed: a MIG instance was destroyed, or a GPU taken out.
    GpuDetached {
        /// Which.
        device: DeviceId,
    },
    /// A device without attempts has another sharing mode. For a GPU that was being switched this ends the switch: a partitioned one has its
    /// instances by then.
    GpuModeChanged {
        /// Which.
        device: DeviceId,
        /// How.
        mode: CollocationMode,
    },
    /// A GPU was not switched to another mode, and keeps its mode.
    ModeRefused {
        /// Which.
        device: DeviceId,
        /// Why, for people.
        reason: String,
    },
    /// A device answers no more. A lost GPU takes its instances with it.
    GpuLost {
        /// Which.
        device: DeviceId,
    },
    /// A lost device answers again.
    #[serde(alias = "gpu_back")]
    GpuRecovered {
        /// Which.
        device: DeviceId,
    },
    /// An operator wants nothing new on a device.
    GpuDrained {
        /// Which.
        device: DeviceId,
    },
    /// A device has faults: nothing new starts there, and attempts that can checkpoint move elsewhere. Others continue.
    GpuFailing {
        /// Which.
        device: DeviceId,
    },
    /// The device may be used again.
    GpuResumed {
        /// Which.
        device: DeviceId,
    },
    /// The MPS server of a device died, and its clients with it.
    MpsServerDied {
        /// Which device.
        device: DeviceId,
    },
    /// A sample of a device's counters.
    GpuSampled {
        /// Which.
        device: DeviceId,
        /// What was seen.
        sample: Sample,
    },
    /// A finished window over a device's counters, instead of samples.
    GpuWindow {
        /// Which.
        device: DeviceId,
        /// What was seen.
        window: Box<WindowSummary>,
    },
    /// The requested power limit of a device is set, or was removed.
    PowerLimited {
        /// Which device.
        device: DeviceId,
        /// The limit in force.
        limit: Option<Watts>,
    },
    /// What each of our attempts does on a device, where the driver can tell.
    ActivitySeen {
        /// Which device.
        device: DeviceId,
        /// For each attempt, the share of time in which its kernels ran.
        attempts: Vec<(AttemptId, Fraction)>,
    },
    /// All processes on a device.
    ProcessesSeen {
        /// Which device.
        device: DeviceId,
        /// All of them; an empty list means that no process is there.
        processes: Vec<ProcessUse>,
    },
    /// A host is short of memory, CPU or disk.
    HostShort {
        /// Which.
        server: ServerId,
    },
    /// It is no longer.
    #[serde(alias = "host_fine")]
    HostRecovered {
        /// Which.
        server: ServerId,
    },
    /// Memory of a host that is available now. Attempts launched later count as if they had taken what they claim, until the
    /// next such event.
    HostMemory {
        /// Which host.
        server: ServerId,
        /// What is available.
        available: MiB,
    },
    /// A job is submitted.
    JobSubmitted(Box<JobSpec>),
    /// Jobs of an array or a sweep are submitted. The scheduler accepts all of them or none.
    JobsSubmitted {
        /// The jobs, in the order of the array.
        jobs: Vec<JobSpec>,
    },
    /// After a restart, before the jobs: the past usage of users, as last stored.
    SharesRestored {
        /// Every account.
        used: Vec<PastUse>,
    },
    /// After a restart, when servers and devices are attached: jobs as last stored.
    JobsRestored {
        /// All of them, in whatever order.
        jobs: Vec<Job>,
    },
    /// A user or operator wants it ended.
    JobCancelled {
        /// Which.
        job: JobId,
    },
    /// A waiting job is to be kept back.
    JobHeld {
        /// Which.
        job: JobId,
    },
    /// A held job may wait again, or a job need not wait for its estimate.
    JobReleased {
        /// Which.
        job: JobId,
    },
    /// A running job is to be stopped, after a checkpoint if it can, and put back.
    JobRequeued {
        /// Which.
        job: JobId,
    },
    /// A user changed the request.
    JobChanged {
        /// Which.
        job: JobId,
        /// The new priority.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<Priority>,
        /// The new time limit.
        #[serde(default)]
        time_limit: LimitChange,
    },
    /// A job that is not to begin before a time of the wall clock: that clock was set.
    BeginMoved {
        /// Which.
        job: JobId,
        /// The same moment of the wall clock, in the scheduler's time.
        begin: Time,
    },
    /// A finished job that no other job waits for can be forgotten.
    JobForgotten {
        /// Which.
        job: JobId,
    },
    /// An estimator answered, with or without a result. A job that waited for this is queued.
    EstimateReady {
        /// For which job.
        job: JobId,
        /// What it found out.
        estimate: Box<Estimate>,
    },
    /// A job reported how far it is.
    Progress {
        /// Which attempt.
        attempt: AttemptId,
        /// How far.
        done: Fraction,
    },
    /// An attempt hangs or is slow, or makes progress again.
    StallSeen {
        /// Which attempt.
        attempt: AttemptId,
        /// How; unset: it makes progress.
        #[serde(default)]
        stall: Option<Stall>,
    },
    /// A job wrote a checkpoint.
    Checkpointed {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// An attempt that ran out of memory reports how much it would have needed on its device. Comes before its end.
    MemoryNeeded {
        /// Which attempt.
        attempt: AttemptId,
        /// What it had, and what it requested.
        needed: MiB,
    },
    /// An attempt ended some time ago, for example while no manager was there. Comes before its end.
    EndedAt {
        /// Which attempt.
        attempt: AttemptId,
        /// When. It is charged until then.
        at: Time,
    },
    /// The driver did not set the memory limits of an attempt on a device: it runs there without.
    NotLimited {
        /// Which attempt.
        attempt: AttemptId,
        /// Where.
        device: DeviceId,
    },
    /// A launch came to nothing.
    LaunchFailed {
        /// Which attempt.
        attempt: AttemptId,
        /// Why, for people.
        reason: String,
    },
    /// An attempt ended.
    JobExited {
        /// Which.
        attempt: AttemptId,
        /// How.
        verdict: Verdict,
    },
    /// The rules changed.
    ConfigurationChanged(Box<Settings>),
    /// Nothing but time passed.
    Tick,
}

/// What becomes of a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitChange {
    /// It stays.
    #[default]
    Keep,
    /// There is none any more.
    Remove,
    /// It is this, from the launch on.
    Set(Seconds),
}

/// The result of an estimator. Values that it left open do not change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Estimate {
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<PerRank<MemoryEstimate>>,
    /// Utilisation when alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// Its part in interference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// How well it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingClass>,
    /// How long it takes when alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Seconds>,
}

impl Estimate {
    /// Puts what was found out into a request.
    pub fn tell(self, spec: &mut JobSpec) {
        spec.memory.estimated = self.memory.or(spec.memory.estimated.take());
        spec.utilisation = self.utilisation.unwrap_or(spec.utilisation);
        spec.interference = self.interference.unwrap_or(spec.interference);
        spec.sharing = self.sharing.or(spec.sharing);
        spec.expected_duration = self.duration.or(spec.expected_duration);
    }
}
