//! The evidence about an attempt that has ended.

use std::collections::BTreeSet;

use carma_core::{DeviceId, Limits, MiB, StopReason, Time};
use carma_gpu::{Blame, Xid};

use crate::attempt::Exit;

/// Everything a verdict is based on.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// How it ended; unset if its supervisor was killed.
    pub exit: Option<Exit>,
    /// When it was launched.
    pub launched_at: Time,
    /// Why it was stopped, if it was.
    pub stopped: Option<StopReason>,
    /// The end of its standard output.
    pub stdout: &'a [u8],
    /// The end of its standard error.
    pub stderr: &'a [u8],
    /// The pids of all its observed processes.
    pub pids: BTreeSet<u32>,
    /// Its GPUs.
    pub devices: Vec<DeviceFacts>,
    /// Its host.
    pub host: HostFacts<'a>,
}

/// The last reading of a GPU of the attempt.
#[derive(Debug, Clone)]
pub struct DeviceFacts {
    /// The GPU.
    pub device: DeviceId,
    /// It no longer answers.
    pub lost: bool,
    /// The server that the attempt was a client of died.
    pub mps_server_died: bool,
    /// Errors that the driver reported.
    pub xids: Vec<XidRecord>,
    /// All its memory.
    pub memory_total: Option<MiB>,
    /// Memory in use by all.
    pub memory_used: Option<MiB>,
    /// The attempt's part of it.
    pub own_memory: Option<MiB>,
    /// The most that it was seen to have.
    pub peak: Option<MiB>,
    /// Memory reserved for it there.
    pub reserved: Option<MiB>,
    /// What it is limited to there.
    pub limits: Limits,
}

/// An Xid error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XidRecord {
    /// The error.
    pub xid: Xid,
    /// When it was reported.
    pub at: Time,
    /// The process it names, if any.
    pub pid: Option<u32>,
}

/// Facts about the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFacts<'a> {
    /// Processes of the attempt's control group that the OOM killer ended; unset if it has no own group.
    pub oom_kills: Option<u64>,
    /// The attempt reached its own limit of host memory.
    pub at_memory_limit: bool,
    /// The kernel's log since the launch, if readable.
    pub kernel_log: Option<&'a str>,
}

impl DeviceFacts {
    /// A GPU without a reading.
    pub const fn new(device: DeviceId) -> Self {
        Self {
            device,
            lost: false,
            mps_server_died: false,
            xids: Vec::new(),
            memory_total: None,
            memory_used: None,
            own_memory: None,
            peak: None,
            reserved: None,
            limits: Limits::Streams,
        }
    }

    /// Free memory.
    pub(super) fn free(&self) -> Option<MiB> {
        Some(self.memory_total? - self.memory_used?)
    }

    /// Whether so little was free that a library may have failed because of it.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.free().zip(self.memory_total).is_some_and(|(free, total)| free.0.saturating_mul(20) < total.0)
    }
}

impl Evidence<'_> {
    /// The first error of its GPUs with one of these blames that may have ended it, and the GPU.
    pub(super) fn xid(&self, blamed: &[Blame]) -> Option<(DeviceId, Xid)> {
        let seen = |device: &DeviceFacts| {
            let of_it = |seen: &&XidRecord| {
                let blame = seen.xid.blame();
                // A fault of the GPU affects all its processes. An error of a program affects only that program.
                let concerns = blame != Blame::Program || seen.pid.is_none_or(|pid| self.pids.contains(&pid));
                seen.at >= self.launched_at && blamed.contains(&blame) && concerns
            };
            device.xids.iter().filter(of_it).min_by_key(|seen| seen.at).map(|seen| (device.device, *seen))
        };
        self.devices.iter().filter_map(seen).min_by_key(|(_, seen)| seen.at).map(|(device, seen)| (device, seen.xid))
    }

    /// A process of it that the OOM killer ended, by the kernel's log.
    pub(super) fn oom_victim(&self) -> Option<u32> {
        self.host.kernel_log?.lines().filter_map(victim).find(|pid| self.pids.contains(pid))
    }
}

/// The process that the OOM killer ended, if this line of the kernel's log names it.
fn victim(line: &str) -> Option<u32> {
    let line = line.to_ascii_lowercase();
    // Before 4.20 the line is "Kill process", and "Killed process" after the kill.
    let (before, after) = line.split_once("killed process ").or_else(|| line.split_once("kill process "))?;
    let digits = after.split(|letter: char| !letter.is_ascii_digit()).next()?;
    (before.contains("out of memory") || after.contains("total-vm")).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carma_core::ServerId;

    #[test]
    fn all_kernels_name_the_killed_process() {
        for (line, pid) in [
            (
                "[12345.678901] Out of memory: Killed process 4711 (python) total-vm:132120576kB, anon-rss:65536000kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:129024kB oom_score_adj:0",
                Some(4711),
            ),
            (
                "Memory cgroup out of memory: Killed process 88 (pt_data_worker) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB",
                Some(88),
            ),
            ("Out of memory: Kill process 99 (python) score 912 or sacrifice child", Some(99)),
            ("Killed process 99 (python) total-vm:132120576kB, anon-rss:65536000kB, file-rss:0kB", Some(99)),
            ("oom_reaper: reaped process 99 (python), now anon-rss:0kB", None),
            ("systemd[1]: Killed process 12", None),
            ("Out of memory: Killed process", None),
            ("Out of memory: Killed process 99999999999", None),
        ] {
            assert_eq!(victim(line), pid, "{line}");
        }
    }

    #[test]
    fn only_errors_of_its_time_and_processes_count() {
        let gpu = DeviceId::gpu(ServerId(0), 0);
        let with = |xid, at, pid| Evidence {
            launched_at: Time::from_secs(10),
            pids: BTreeSet::from([7]),
            devices: vec![DeviceFacts { xids: vec![XidRecord { xid: Xid(xid), at: Time::from_secs(at), pid }], ..DeviceFacts::new(gpu) }],
            ..Evidence::default()
        };
        let all = [Blame::Gpu, Blame::Lost, Blame::Program];
        assert_eq!(with(79, 9, None).xid(&all), None);
        assert_eq!(with(79, 11, Some(8)).xid(&all), Some((gpu, Xid(79))));
        assert_eq!(with(31, 11, Some(8)).xid(&all), None);
        assert_eq!(with(31, 11, Some(7)).xid(&all), Some((gpu, Xid(31))));
        assert_eq!(with(31, 11, Some(7)).xid(&[Blame::Gpu, Blame::Lost]), None);
    }
}
