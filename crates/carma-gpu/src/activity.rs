//! Activity of each process on a device, if the driver reports it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carma_core::Fraction;
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessUtilizationSample;

use crate::driver::{DeviceCall, Driver};
use crate::error::{DriverError, sensed};
use crate::identity::DeviceUuid;
use crate::processes::retried;

/// The recent activity of the processes on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessActivity {
    /// The driver does not report it, as for partitioned GPUs.
    Unknown,
    /// The share of time in which kernels of each process ran; processes that are not listed ran none.
    Known(BTreeMap<u32, Fraction>),
}

impl ProcessActivity {
    /// The activity of a process; unset if unknown.
    pub fn of(&self, pid: u32) -> Option<Fraction> {
        match self {
            Self::Unknown => None,
            Self::Known(processes) => Some(processes.get(&pid).copied().unwrap_or_default()),
        }
    }
}

impl Driver {
    /// Activity of the processes on these devices over this time; all devices are queried in parallel.
    pub fn process_activity(&self, devices: &[DeviceUuid], over: Duration) -> Vec<(DeviceUuid, Result<ProcessActivity, DriverError>)> {
        let since = SystemTime::now().checked_sub(over).and_then(|since| since.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| since.as_micros() as u64);
        let ask = |device| self.begin(device, "nvmlDeviceGetProcessUtilization", move |device| activity(device, since));
        let calls: Vec<_> = devices.iter().map(|device| (device.clone(), ask(device))).collect();
        calls.into_iter().map(|(device, call)| (device, call.and_then(DeviceCall::wait))).collect()
    }
}

fn activity(device: &Device<'_>, since: u64) -> Result<ProcessActivity, NvmlError> {
    match retried(|| device.process_utilization_stats(since)) {
        // Only active processes have samples.
        Err(NvmlError::NotFound) => Ok(summed(&[], since)),
        answer => Ok(sensed(answer)?.map_or(ProcessActivity::Unknown, |samples| summed(&samples, since))),
    }
}

/// Drivers return samples older than requested, and uninitialised entries with more than 100 %.
fn summed(samples: &[ProcessUtilizationSample], since: u64) -> ProcessActivity {
    let mut processes: BTreeMap<u32, Fraction> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.timestamp >= since && sample.sm_util <= 100) {
        let most = processes.entry(sample.pid).or_default();
        *most = (*most).max(Fraction::clamped(f64::from(sample.sm_util) / 100.0));
    }
    ProcessActivity::Known(processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_samples_are_ignored() {
        let sample = |pid, timestamp, sm_util| ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 0, enc_util: 0, dec_util: 0 };
        let activity = summed(&[sample(1, 50, 30), sample(1, 60, 40), sample(2, 49, 90), sample(3, 60, 4_000_000)], 50);
        let done = |pid| activity.of(pid).map(Fraction::get);
        assert_eq!([1, 2, 3, 4].map(done), [Some(0.4), Some(0.0), Some(0.0), Some(0.0)]);
        assert_eq!(ProcessActivity::Unknown.of(1), None);
    }
}
