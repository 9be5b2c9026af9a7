//! The verdict on an attempt.

use carma_core::{MiB, StopReason, Verdict};
use carma_gpu::Blame as XidBlame;
use serde::{Deserialize, Serialize};

use super::blame::Blame;
use super::cause::{Finding, Findings, cause};
use super::evidence::{DeviceFacts, Evidence};
use super::lines::plain;
use super::memory::MemoryAtFailure;
use super::patterns::Meaning;
use crate::attempt::Exit;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict for the scheduler.
    pub verdict: Verdict,
    /// The reason, for people.
    pub reason: String,
    /// Who is to blame, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// The memory it would have needed on its GPU, if it ran out of memory and this is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<MiB>,
}

impl Judgement {
    fn new(verdict: Verdict, blame: impl Into<Option<Blame>>, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into(), blame: blame.into(), needed: None }
    }
}

/// A failure to explain.
struct Failure<'a> {
    evidence: &'a Evidence<'a>,
    code: i32,
    signal: Option<i32>,
    cause: Option<Finding<'a>>,
    /// The logs mention that GPU memory ran out, whether or not that ended the attempt.
    short_before: bool,
}

/// Explanations in order: actions of the manager and facts of the machine first, then clear log lines, then hints.
const EXPLANATIONS: [fn(&Failure<'_>) -> Option<Judgement>; 7] =
    [stopped, gpu_failed, out_of_memory, mps_failed, host_out_of_memory, killed_from_outside, log_names_lost_gpu];

/// The exit code after SIGTERM, as shells report it.
const TERMINATED: i32 = 128 + 15;

/// Judges how an attempt ended. Exit code 0 is success, independent of the logs.
///
/// ```
/// use carma_core::Verdict;
/// use carma_manager::attempt::Exit;
/// use carma_manager::judge::{Evidence, verdict};
/// let evidence = Evidence { exit: Some(Exit::Code(1)), stderr: b"torch.OutOfMemoryError: CUDA out of memory.", ..Evidence::default() };
/// assert_eq!(verdict(&evidence).verdict, Verdict::OutOfMemory);
/// ```
pub fn verdict(evidence: &Evidence<'_>) -> Judgement {
    let (code, signal) = match &evidence.exit {
        None => {
            return Judgement::new(Verdict::SupervisorLost, Blame::Hardware, "its supervisor was killed, and its exit code is unknown");
        }
        Some(Exit::NotStarted(reason)) => {
            return Judgement::new(Verdict::CouldNotStart { reason: reason.clone() }, None, reason.clone());
        }
        // It got SIGTERM, so its exit code is meaningless.
        Some(idle @ Exit::Idle(_)) if evidence.stopped.is_none() => {
            let reason = format!("{idle}: its terminal had no input and no output");
            return Judgement::new(Verdict::Failed { code: TERMINATED }, Blame::Stopped, reason);
        }
        Some(Exit::Idle(_)) => (TERMINATED, None),
        Some(Exit::Code(0)) => return Judgement::new(Verdict::Succeeded, None, "it exited with code 0"),
        // Shells and launchers report a signal as an exit code.
        Some(Exit::Code(code)) => (*code, code.checked_sub(128).filter(|signal| (1..=64).contains(signal))),
        Some(Exit::Signal(signal)) => (128_i32.saturating_add(*signal), Some(*signal)),
    };
    let (stderr, stdout) = (plain(evidence.stderr), plain(evidence.stdout));
    let (stderr, stdout) = (Findings::read(&stderr), Findings::read(&stdout));
    let short_before = stderr.short_of_memory || stdout.short_of_memory;
    let failure = Failure { evidence, code, signal, cause: cause(&stderr, &stdout), short_before };
    EXPLANATIONS.iter().find_map(|explain| explain(&failure)).unwrap_or_else(|| failed(&failure))
}

impl Failure<'_> {
    fn meaning(&self) -> Option<Meaning> {
        self.cause.as_ref().map(|cause| cause.meaning)
    }

    /// The line of the cause, short enough for a table.
    fn cause_line(&self) -> Option<String> {
        const MAX_LENGTH: usize = 200;
        let text = self.cause.as_ref()?.text.trim();
        let mut line: String = text.chars().take(MAX_LENGTH).collect();
        if line.len() < text.len() {
            line.push_str(" ...");
        }
        Some(line)
    }

    fn failed(&self, blame: impl Into<Option<Blame>>, reason: impl Into<String>) -> Judgement {
        Judgement::new(Verdict::Failed { code: self.code }, blame, reason)
    }
}

fn stopped(failure: &Failure<'_>) -> Option<Judgement> {
    let (verdict, blame, why) = match failure.evidence.stopped? {
        StopReason::Cancelled => (Verdict::Failed { code: failure.code }, Blame::Stopped, "the job was cancelled"),
        StopReason::TimeLimit => (Verdict::Failed { code: failure.code }, Blame::Stopped, "its time was up"),
        StopReason::Requeued => (Verdict::Failed { code: failure.code }, Blame::Stopped, "it was requeued"),
        StopReason::TimeSliceOver => {
            (Verdict::Failed { code: failure.code }, Blame::Stopped, "its time slice was over, and other jobs waited")
        }
        StopReason::Moved => (Verdict::Failed { code: failure.code }, Blame::Stopped, "it was moved to another GPU"),
        StopReason::ServerEnding => (Verdict::Failed { code: failure.code }, Blame::Stopped, "its server ends soon"),
        StopReason::Borrows(borrowing) => return Some(failure.failed(Blame::Job, format!("it was stopped: it {borrowing}"))),
        StopReason::Hanging => (Verdict::Hung, Blame::Stopped, "it hung: no GPU activity, no output and no progress"),
        StopReason::GpuLost => (Verdict::GpuLost, Blame::Hardware, "its GPU was lost"),
        StopReason::MpsServerDied => (Verdict::MpsServerDied, Blame::Hardware, "its MPS server died"),
    };
    Some(Judgement::new(verdict, blame, format!("it was stopped: {why}")))
}

fn gpu_failed(failure: &Failure<'_>) -> Option<Judgement> {
    let evidence = failure.evidence;
    let reason = if let Some((device, xid)) = evidence.xid(&[XidBlame::Gpu, XidBlame::Lost]) {
        format!("{device} failed: {xid}")
    } else {
        format!("{} was lost", evidence.devices.iter().find(|device| device.lost)?.device)
    };
    Some(Judgement::new(Verdict::GpuLost, Blame::Hardware, reason))
}

fn out_of_memory(failure: &Failure<'_>) -> Option<Judgement> {
    let line = failure.cause_line()?;
    let devices = &failure.evidence.devices;
    let certain = match failure.meaning()? {
        Meaning::GpuMemory => true,
        Meaning::PerhapsGpuMemory if failure.short_before || devices.iter().any(DeviceFacts::is_nearly_full) => false,
        _ => return None,
    };
    let seen = MemoryAtFailure::from_message(failure.cause.as_ref()?.text).or_else(|| MemoryAtFailure::from_devices(devices));
    let likely = if certain { "" } else { ", most likely" };
    let shown = seen.map_or_else(|| line.clone(), |seen| seen.describe());
    let needed = seen.and_then(|seen| seen.needed());
    if let Some(limited) = devices.iter().find_map(|device| device.limited(seen.and_then(|seen| seen.wanted))) {
        let reason = format!("GPU memory ran out{likely}: {limited}");
        return Some(Judgement { needed, ..Judgement::new(Verdict::OutOfMemory, Blame::Job, reason) });
    }
    let reason = format!("GPU memory ran out{likely}: {shown}");
    let reserved = devices.iter().filter_map(|device| device.reserved).max();
    Some(Judgement { needed, ..Judgement::new(Verdict::OutOfMemory, seen.and_then(|seen| seen.blame(reserved)), reason) })
}

fn mps_failed(failure: &Failure<'_>) -> Option<Judgement> {
    if let Some(device) = failure.evidence.devices.iter().find(|device| device.mps_server_died) {
        return Some(Judgement::new(Verdict::MpsServerDied, Blame::Hardware, format!("the MPS server of {} died", device.device)));
    }
    let Meaning::Mps(mps) = failure.meaning()? else { return None };
    let line = failure.cause_line()?;
    Some(match mps.verdict() {
        Some(verdict) => Judgement::new(verdict, Blame::Hardware, line),
        None => failure.failed(Blame::Stopped, line),
    })
}

fn host_out_of_memory(failure: &Failure<'_>) -> Option<Judgement> {
    let host = &failure.evidence.host;
    if let (true, Some(kills @ 1..)) = (host.at_memory_limit, host.oom_kills) {
        let reason = format!("it exceeded its limit of host memory (--host-mem), and the kernel killed {kills} of its processes");
        return Some(Judgement::new(Verdict::HostOutOfMemory, Blame::Job, reason));
    }
    let reason = match (failure.evidence.oom_victim(), host.oom_kills, failure.meaning()) {
        (Some(pid), ..) => format!("the host ran out of memory, and the kernel killed its process {pid}"),
        (None, Some(kills @ 1..), _) => format!("it ran out of host memory, and the kernel killed {kills} of its processes"),
        (None, _, Some(Meaning::SharedMemory)) => {
            format!("the host's shared memory (/dev/shm) ran out: {}", failure.cause_line().unwrap_or_default())
        }
        // If the kernel counts OOM kills, the count decides.
        (None, None, Some(Meaning::Killed)) => {
            format!("the host ran out of memory, most likely: {}", failure.cause_line().unwrap_or_default())
        }
        _ => return None,
    };
    Some(Judgement::new(Verdict::HostOutOfMemory, Blame::Hardware, reason))
}

fn killed_from_outside(failure: &Failure<'_>) -> Option<Judgement> {
    const SIGKILL: i32 = 9;
    let told_nothing = matches!(failure.meaning(), None | Some(Meaning::Consequence | Meaning::Killed));
    let reason = match failure.evidence.host.oom_kills {
        Some(_) => "it was killed (signal 9), but not by the kernel for lack of memory",
        None => "it was killed (signal 9) by an unknown process; the kernel does this when the host is out of memory",
    };
    (failure.signal == Some(SIGKILL) && told_nothing).then(|| failure.failed(None, reason))
}

fn log_names_lost_gpu(failure: &Failure<'_>) -> Option<Judgement> {
    (failure.meaning() == Some(Meaning::GpuLost))
        .then(|| Judgement::new(Verdict::GpuLost, Blame::Hardware, failure.cause_line().unwrap_or_default()))
}

/// An ordinary failure, with a hint.
fn failed(failure: &Failure<'_>) -> Judgement {
    let ending = match failure.signal {
        Some(signal) => format!("it was ended by signal {signal}{}", name(signal).map_or_else(String::new, |name| format!(" ({name})"))),
        None => format!("it exited with code {}", failure.code),
    };
    let quoted = failure.cause_line().map_or_else(String::new, |line| format!(": {line}"));
    let hint = match failure.meaning() {
        Some(Meaning::HostMemory) => "; it requested more host memory than its limit".to_owned(),
        Some(Meaning::PerhapsGpuMemory) => "; lack of GPU memory is possible, but its GPU did not appear full".to_owned(),
        meaning => match failure.evidence.xid(&[XidBlame::Program, XidBlame::Unclear]) {
            Some((device, xid)) => format!("; {device} reported {xid}"),
            None if meaning.is_none() && failure.evidence.devices.iter().any(DeviceFacts::is_nearly_full) => {
                "; its GPU was nearly full, so it may have run out of GPU memory".to_owned()
            }
            None => String::new(),
        },
    };
    let blame = matches!(failure.meaning(), Some(Meaning::Other | Meaning::HostMemory)).then_some(Blame::Job);
    failure.failed(blame, format!("{ending}{quoted}{hint}"))
}

/// The names of signals that programs die of.
fn name(signal: i32) -> Option<&'static str> {
    let names = [
        (1, "hangup"),
        (2, "interrupt"),
        (4, "illegal instruction"),
        (6, "abort"),
        (7, "bus error"),
        (8, "arithmetic"),
        (9, "kill"),
        (11, "segmentation fault"),
        (13, "broken pipe"),
        (15, "terminate"),
    ];
    names.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}
