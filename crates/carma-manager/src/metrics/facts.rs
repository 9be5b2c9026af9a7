//! The state of the engine at one moment, for metrics.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, MiB, Seconds, Stall};
use carma_gpu::Reading;
use carma_gpu::profiling::{Counters, Unit};

use crate::api::{GpuDetail, ServerDetail, Status};
use crate::cluster::{Pilot, Pool};
use crate::host::HostReading;
use crate::measure::DeviceEnergy;
use crate::store::Phase;

/// The facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The state of the manager.
    pub status: Status,
    /// Decisions can be written to the store.
    pub writable: bool,
    /// The last sample of the host.
    pub host: Option<HostReading>,
    /// The host is short of a resource, and no new jobs are started.
    pub host_short: bool,
    /// GPUs that were broken when the manager started, and that it does not know.
    pub unusable: u32,
    /// The GPUs and instances.
    pub gpus: Vec<GpuFacts>,
    /// The servers of agents.
    pub servers: Vec<ServerDetail>,
    /// The pools of pilots.
    pub pools: Vec<PoolFacts>,
    /// Unfinished jobs, by phase.
    pub phases: BTreeMap<Phase, u64>,
    /// Jobs that could start if there were room.
    pub ready: u64,
    /// Waiting time of the first of them.
    pub oldest: Option<Seconds>,
    /// Jobs that run.
    pub running: Vec<JobFacts>,
}

/// A GPU or an instance.
#[derive(Debug, Clone)]
pub struct GpuFacts {
    /// Its form in the API.
    pub detail: GpuDetail,
    /// Its identity in the driver.
    pub unit: Unit,
    /// It is partitioned, and its instances are used instead.
    pub partitioned: bool,
    /// The last successful reading.
    pub reading: Option<Reading>,
    /// Its profiling counters.
    pub counters: Option<Counters>,
    /// Age of the last sample.
    pub age: Option<Seconds>,
    /// Memory of processes that are not ours.
    pub foreign_memory: MiB,
    /// The split of its energy.
    pub energy: Option<DeviceEnergy>,
}

/// A pool and its pilots.
#[derive(Debug, Clone)]
pub struct PoolFacts {
    /// The pool.
    pub pool: Pool,
    /// Its pilots.
    pub pilots: Vec<Pilot>,
}

/// A job that runs.
#[derive(Debug, Clone)]
pub struct JobFacts {
    /// Its attempt.
    pub attempt: AttemptId,
    /// Its name.
    pub name: Option<String>,
    /// Its user.
    pub user: String,
    /// GPUs it has.
    pub gpus: u32,
    /// Runtime.
    pub ran: Seconds,
    /// Progress, if it reports any.
    pub progress: Option<Fraction>,
    /// How it does not get on.
    pub stall: Option<Stall>,
}

#[cfg(test)]
pub(super) mod example {
    use std::time::Instant;

    use carma_core::Watts;
    use std::collections::BTreeSet;

    use carma_gpu::Throttling;
    use carma_gpu::profiling::fields::by_id;
    use serde_json::json;

    use super::*;

    /// The first instance of a partitioned GPU, with one job on it.
    pub(in super::super) fn instance() -> GpuFacts {
        let detail = json!({
            "device": "s0/gpu3/mig1", "uuid": "MIG-7", "name": "NVIDIA A100-SXM4-40GB 3g.20gb", "mode": "mig", "lost": false, "drained": false,
            "memory": 20096, "memory_used": 1024, "reserved": 2048, "available": 18048, "power": null, "energy": null, "temperature": null,
            "utilisation": {"smact": 0.5}, "foreign": 0, "obstacles": [], "closed": [], "counters": "dcgmi",
            "tenants": [{
                "attempt": {"job": 7, "number": 2}, "name": "a \"quoted\" name", "user": "alice", "reserved": 2048, "memory": 1024, "smact": 0.5,
                "energy": 12.5, "launched": 0,
            }],
        });
        let mut counters = Counters::new(Instant::now());
        counters.set(by_id(1002).unwrap(), 0.5);
        counters.set(by_id(1005).unwrap(), 0.25);
        GpuFacts {
            detail: serde_json::from_value(detail).unwrap(),
            unit: Unit { gpu: "GPU-3".parse().unwrap(), instance: Some(1) },
            partitioned: false,
            reading: None,
            counters: Some(counters),
            age: Some(Seconds::from_secs(1)),
            foreign_memory: MiB::ZERO,
            energy: None,
        }
    }

    /// The partitioned GPU.
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
            throttling: BTreeSet::from([Throttling::Thermal]),
            processes: Vec::new(),
        });
        gpu
    }
}
