//! What each process on a device does, where the driver tells.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carma_core::Fraction;
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessUtilizationSample;

use crate::driver::{DeviceCall, Driver};
use crate::error::{DriverError, sensed};
use crate::identity::DeviceUuid;
use crate::processes::patient;

/// What processes on a device did lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessActivity {
    /// The driver does not tell, as of GPUs that are cut.
    Untold,
    /// The share of time in which kernels of each process ran; of those that are not listed none did.
    Told(BTreeMap<u32, Fraction>),
}

impl ProcessActivity {
    /// What a process did; unset where that is not told.
    pub fn of(&self, pid: u32) -> Option<Fraction> {
        match self {
            Self::Untold => None,
            Self::Told(processes) => Some(processes.get(&pid).copied().unwrap_or_default()),
        }
    }
}

impl Driver {
    /// What processes on these devices did over the last so many seconds, all asked at the same time.
    pub fn process_activity(&self, devices: &[DeviceUuid], over: Duration) -> Vec<(DeviceUuid, Result<ProcessActivity, DriverError>)> {
        let since = SystemTime::now().checked_sub(over).and_then(|since| since.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| since.as_micros() as u64);
        let ask = |device| self.begin(device, "nvmlDeviceGetProcessUtilization", move |device| activity(device, since));
        let begun: Vec<_> = devices.iter().map(|device| (device.clone(), ask(device))).collect();
        begun.into_iter().map(|(device, begun)| (device, begun.and_then(DeviceCall::wait))).collect()
    }
}

fn activity(device: &Device<'_>, since: u64) -> Result<ProcessActivity, NvmlError> {
    match patient(|| device.process_utilization_stats(since)) {
        // There are samples only of processes that did something.
        Err(NvmlError::NotFound) => Ok(told(&[], since)),
        answer => Ok(sensed(answer)?.map_or(ProcessActivity::Untold, |samples| told(&samples, since))),
    }
}

/// Drivers hand out samples that are older than was asked for, and entries that nobody wrote, which show more than all of the time.
fn told(samples: &[ProcessUtilizationSample], since: u64) -> ProcessActivity {
    let mut processes: BTreeMap<u32, Fraction> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.timestamp >= since && sample.sm_util <= 100) {
        let most = processes.entry(sample.pid).or_default();
        *most = (*most).max(Fraction::clamped(f64::from(sample.sm_util) / 100.0));
    }
    ProcessActivity::Told(processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_samples_those_count_that_can_be_true() {
        let sample = |pid, timestamp, sm_util| ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 0, enc_util: 0, dec_util: 0 };
        let activity = told(&[sample(1, 50, 30), sample(1, 60, 40), sample(2, 49, 90), sample(3, 60, 4_000_000)], 50);
        let done = |pid| activity.of(pid).map(Fraction::get);
        assert_eq!([1, 2, 3, 4].map(done), [Some(0.4), Some(0.0), Some(0.0), Some(0.0)]);
        assert_eq!(ProcessActivity::Untold.of(1), None);
    }
}
