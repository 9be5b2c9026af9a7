//! Faults of GPUs: a GPU on which one kind of fault repeats is drained.

use std::collections::HashMap;
use std::fmt;

use carma_core::{DeviceId, Seconds, Time};
use carma_gpu::{Blame, Incident, Xid};

use crate::configuration::WatchConfig;

/// A kind of fault of the hardware or its driver. Errors of programs are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// The driver reported this error.
    Xid(Xid),
    /// An error in memory could not be corrected.
    Memory,
    /// It was lost.
    Lost,
    /// Its driver calls hung.
    Hanging,
    /// A job failed with words about broken hardware, and the driver reported nothing.
    JobSaysSo,
}

impl Fault {
    /// The fault that an incident shows, if it does. A loss is counted where it is known to be new.
    pub(crate) fn of(incident: Incident) -> Option<Self> {
        match incident {
            Incident::Xid(xid) if xid.blame() == Blame::Gpu => Some(Self::Xid(xid)),
            Incident::EccUncorrected => Some(Self::Memory),
            Incident::Hanging => Some(Self::Hanging),
            Incident::Xid(_) | Incident::EccCorrected | Incident::Lost | Incident::Back | Incident::InstancesChanged => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xid(xid) => xid.fmt(f),
            Self::Memory => f.write_str("an uncorrected memory error"),
            Self::Lost => f.write_str("lost"),
            Self::Hanging => f.write_str("hanging driver calls"),
            Self::JobSaysSo => f.write_str("a job failed and reported broken hardware"),
        }
    }
}

/// A fault that has repeated too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultReport {
    pub(crate) fault: Fault,
    pub(crate) times: usize,
    /// From the first to the last.
    pub(crate) within: Seconds,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, times, within } = self;
        match times {
            1 => write!(f, "{fault}"),
            _ => write!(f, "{fault}: {times} times within {}", carma_format::duration(within.get())),
        }
    }
}

/// The recent faults of all GPUs.
#[derive(Debug, Default)]
pub(crate) struct FaultLog(HashMap<(DeviceId, Fault), Vec<Time>>);

impl FaultLog {
    /// Adds a fault. Returns a report when it has repeated too often.
    pub(crate) fn add(&mut self, device: DeviceId, fault: Fault, now: Time, config: &WatchConfig) -> Option<FaultReport> {
        let limit = config.drain_after? as usize;
        let seen = self.0.entry((device, fault)).or_default();
        seen.retain(|time| now - *time <= config.drain_within);
        seen.push(now);
        let first = *seen.first()?;
        (seen.len() >= limit).then(|| FaultReport { fault, times: seen.len(), within: now - first })
    }

    /// An operator uses the GPU again: its earlier faults no longer count.
    pub(crate) fn forget(&mut self, device: DeviceId) {
        self.0.retain(|(other, _), _| *other != device);
    }
}

#[cfg(test)]
mod tests {
    use carma_core::ServerId;
    use proptest::prelude::*;

    use super::*;

    fn gpu(number: u16) -> DeviceId {
        DeviceId::gpu(ServerId(0), number)
    }

    fn config(drain_after: u32) -> WatchConfig {
        WatchConfig {
            drain_after: Some(drain_after).filter(|limit| *limit > 0),
            drain_within: Seconds::from_secs(3_600),
            ..WatchConfig::default()
        }
    }

    #[test]
    fn only_faults_of_the_gpu_count() {
        assert_eq!(Fault::of(Incident::Xid(Xid(95))), Some(Fault::Xid(Xid(95))));
        assert_eq!([13, 31, 43, 94].map(|xid| Fault::of(Incident::Xid(Xid(xid)))), [None; 4], "errors of programs");
        assert_eq!([Incident::EccCorrected, Incident::Back, Incident::InstancesChanged].map(Fault::of), [None; 3]);
    }

    #[test]
    fn a_fault_that_repeats_on_one_gpu_is_reported() {
        let mut log = FaultLog::default();
        let mut add = |device, fault, minute: u64| log.add(gpu(device), fault, Time::from_secs(minute * 60), &config(3));
        assert_eq!([add(0, Fault::Memory, 0), add(1, Fault::Memory, 1), add(0, Fault::Hanging, 2), add(0, Fault::Memory, 3)], [None; 4]);
        let report = add(0, Fault::Memory, 10).unwrap();
        assert_eq!(report.to_string(), "an uncorrected memory error: 3 times within 10 min");
        assert_eq!(add(0, Fault::Memory, 70), None, "the first ones are too long ago");
        log.forget(gpu(1));
        assert_eq!(log.add(gpu(0), Fault::Memory, Time::from_secs(70 * 60), &config(0)), None, "no GPU is drained");
    }

    proptest! {
        /// A GPU is reported if and only if one kind of fault came often enough within the time.
        #[test]
        fn the_count_within_the_time_decides(steps in prop::collection::vec((0_u16..2, 0_u64..1_500), 0..40), limit in 1_u32..5) {
            let (mut log, mut now, mut all) = (FaultLog::default(), 0, Vec::new());
            for (device, pause) in steps {
                now += pause;
                all.push((device, now));
                let recent = all.iter().filter(|(other, at)| *other == device && now - at <= 3_600).count();
                let reported = log.add(gpu(device), Fault::Hanging, Time::from_secs(now), &config(limit)).is_some();
                prop_assert_eq!(reported, recent >= limit as usize);
            }
        }
    }
}
