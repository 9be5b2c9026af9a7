//! What the engine knows at one moment, as far as metrics tell of it.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, MiB, Seconds};
use carma_gpu::Reading;
use carma_gpu::profiling::{Counters, Unit};

use crate::api::{GpuDetail, Status};
use crate::host::HostReading;
use crate::measure::DeviceEnergy;
use crate::store::Phase;

/// All of it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// How the manager is.
    pub status: Status,
    /// What is decided can be written down.
    pub writable: bool,
    /// The last look at the host.
    pub host: Option<HostReading>,
    /// The host is short of something, and nothing new is started.
    pub host_short: bool,
    /// The GPUs and instances.
    pub gpus: Vec<GpuFacts>,
    /// Jobs that are not over, by where they stand.
    pub phases: BTreeMap<Phase, u64>,
    /// Jobs that could start if there were room.
    pub ready: u64,
    /// How long the first of them has waited.
    pub oldest: Option<Seconds>,
    /// Jobs that run.
    pub running: Vec<RunningJob>,
}

/// A GPU or an instance.
#[derive(Debug, Clone)]
pub struct GpuFacts {
    /// As the API tells of it.
    pub detail: GpuDetail,
    /// What it is to its driver.
    pub unit: Unit,
    /// It is cut into instances, which are used in its place.
    pub partitioned: bool,
    /// The last reading that came to something.
    pub reading: Option<Reading>,
    /// Its profiling counters.
    pub counters: Option<Counters>,
    /// How long ago it was looked at.
    pub age: Option<Seconds>,
    /// Memory of processes that are not ours.
    pub foreign_memory: MiB,
    /// Where its energy went.
    pub energy: Option<DeviceEnergy>,
}

/// A job that runs.
#[derive(Debug, Clone)]
pub struct RunningJob {
    /// Which attempt of it.
    pub attempt: AttemptId,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub user: String,
    /// GPUs it has.
    pub gpus: u32,
    /// For how long it has run.
    pub ran: Seconds,
    /// How far it is, where it tells.
    pub progress: Option<Fraction>,
}

#[cfg(test)]
pub(super) mod example {
    use std::time::Instant;

    use carma_core::Watts;
    use serde_json::json;

    use super::*;

    /// The first instance of a GPU that is cut, with one job on it.
    pub(in super::super) fn instance() -> GpuFacts {
        let detail = json!({
            "device": "s0/gpu3/mig1", "uuid": "MIG-7", "name": "NVIDIA A100-SXM4-40GB 3g.20gb", "mode": "mig", "lost": false, "drained": false,
            "memory": 20096, "memory_used": 1024, "promised": 2048, "available": 18048, "power": null, "energy": null, "temperature": null,
            "utilisation": {"smact": 0.5}, "foreign": 0, "obstacles": [], "closed": [], "counters": "dcgmi",
            "tenants": [{
                "attempt": {"job": 7, "number": 2}, "name": "a \"quoted\" name", "user": "alice", "promised": 2048, "memory": 1024, "smact": 0.5,
                "energy": 12.5, "launched": 0,
            }],
        });
        GpuFacts {
            detail: serde_json::from_value(detail).unwrap(),
            unit: Unit { gpu: "GPU-3".parse().unwrap(), instance: Some(1) },
            partitioned: false,
            reading: None,
            counters: Some(Counters {
                smact: Some(Fraction::clamped(0.5)),
                drama: Some(Fraction::clamped(0.25)),
                ..Counters::new(Instant::now())
            }),
            age: Some(Seconds::from_secs(1)),
            foreign_memory: MiB::ZERO,
            energy: None,
        }
    }

    /// The GPU that is cut.
    pub(in super::super) fn whole() -> GpuFacts {
        let mut gpu = instance();
        (gpu.detail.device, gpu.detail.uuid, gpu.detail.name) =
            ("s0/gpu3".parse().unwrap(), "GPU-3".parse().unwrap(), "NVIDIA A100-SXM4-40GB".to_owned());
        gpu.detail.tenants.clear();
        (gpu.detail.power, gpu.partitioned, gpu.unit.instance, gpu.counters) = (Some(Watts(250.5)), true, None, None);
        gpu.reading = Some(Reading {
            memory_used: MiB(1500),
            memory_total: MiB(40_960),
            utilisation: Some(Fraction::clamped(0.37)),
            power: Some(Watts(250.5)),
            energy: Some(1234.5678),
            temperature: Some(61),
            clock: Some(1410),
            uncorrected: Some(0),
            processes: Vec::new(),
        });
        gpu
    }
}
