//! The manager's GPUs, in the simulator's terms.

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};
use carma_core::{CollocationMode, DeviceId};
use carma_manager::api::{GpuDetail, SampleQuery};
use carma_manager::client::Client;
use carma_manager::store::{MinuteMean, UnixMillis};
use carma_sim::{GPU_TYPES, GpuType, ServerGroup, Servers, Sharing};

use crate::replay::simulated_kind;

/// Least share of seconds with power samples: with fewer, the energy is unknown.
const LEAST_KNOWN: f64 = 0.9;

/// The GPUs of a server.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) servers: Servers,
    pub(super) sharing: Sharing,
    /// Assumptions about them.
    pub(super) notes: Vec<String>,
    kinds: Vec<&'static GpuType>,
    places: HashMap<DeviceId, usize>,
}

impl Machine {
    pub(super) fn of(gpus: &[GpuDetail]) -> Result<Self> {
        ensure!(!gpus.is_empty(), "the manager has no GPUs to simulate");
        let any = |is: fn(CollocationMode) -> bool| gpus.iter().any(|gpu| is(gpu.mode));
        if any(|mode| mode == CollocationMode::Mig) {
            bail!("GPUs with MIG instances are not simulated");
        }
        let mut notes = Vec::new();
        let mps = any(|mode| matches!(mode, CollocationMode::Mps { .. }));
        if mps && any(|mode| mode == CollocationMode::Streams) {
            notes.push("Only some GPUs are shared by MPS: all are simulated with MPS.".to_owned());
        }
        let mut kinds = Vec::new();
        for gpu in gpus {
            kinds.push(simulated_kind(gpu).unwrap_or_else(|| {
                let kind = nearest(gpu);
                notes.push(format!("{} is unknown: it is simulated as {}, the nearest by memory.", gpu.name, kind.name));
                kind
            }));
        }
        notes.sort_unstable();
        notes.dedup();
        let groups = kinds.iter().map(|kind| ServerGroup { servers: 1, gpus: 1, kind });
        let mut merged: Vec<ServerGroup> = Vec::new();
        for group in groups {
            match merged.iter_mut().find(|known| known.kind == group.kind) {
                Some(known) => known.gpus += 1,
                None => merged.push(group),
            }
        }
        let places = gpus.iter().enumerate().map(|(place, gpu)| (gpu.device, place)).collect();
        let sharing = if mps { Sharing::Mps } else { Sharing::Streams };
        Ok(Self { servers: Servers { groups: merged }, sharing, notes, kinds, places })
    }

    /// A GPU's index; one that is gone counts as the first.
    pub(super) fn place(&self, device: DeviceId) -> usize {
        self.places.get(&device).copied().unwrap_or_default()
    }

    pub(super) fn kind(&self, place: usize) -> &'static GpuType {
        self.kinds.get(place).copied().unwrap_or_else(GpuType::reference)
    }

    pub(super) fn gpus(&self) -> usize {
        self.kinds.len()
    }
}

fn nearest(gpu: &GpuDetail) -> &'static GpuType {
    GPU_TYPES.iter().min_by_key(|kind| kind.memory.0.abs_diff(gpu.memory.0)).unwrap_or_else(|| GpuType::reference())
}

/// The energy of all GPUs between two times, from power samples; unset with too few of them.
pub(super) fn joules(client: &mut Client, gpus: &[GpuDetail], (since, until): (UnixMillis, UnixMillis)) -> Result<Option<f64>> {
    let query = SampleQuery { since: Some(since), until: Some(UnixMillis(until.0 + 60_000)) };
    let mut sum = Some(0.0);
    for gpu in gpus {
        let minutes = client.samples(&gpu.device.to_string(), &query)?;
        sum = sum.zip(energy(&minutes, (since.0 as f64 / 1000.0, until.0 as f64 / 1000.0))).map(|(sum, more)| sum + more);
    }
    Ok(sum)
}

/// Energy of one GPU between two times in seconds; minutes with a few missing samples are extrapolated.
fn energy(minutes: &[MinuteMean], (since, until): (f64, f64)) -> Option<f64> {
    let (mut known, mut joules) = (0.0, 0.0);
    for minute in minutes {
        let begins = minute.minute.0 as f64 * 60.0;
        let within = ((begins + 60.0).min(until) - begins.max(since)).max(0.0);
        if let Some(power) = minute.power {
            known += within;
            joules += within * power.0;
        }
    }
    let all = until - since;
    (all > 0.0 && known >= LEAST_KNOWN * all).then(|| joules * all / known)
}

#[cfg(test)]
pub(crate) mod tests {
    use carma_core::{MiB, ServerId, Utilisation, Watts};
    use carma_manager::store::UnixMinute;

    use super::*;

    /// An idle GPU of 40 GiB.
    pub(crate) fn gpu(ordinal: u16, name: &str) -> GpuDetail {
        GpuDetail {
            device: DeviceId::gpu(ServerId(0), ordinal),
            uuid: format!("GPU-{ordinal}").parse().unwrap(),
            name: name.to_owned(),
            node: None,
            mode: CollocationMode::Streams,
            lost: false,
            drained: false,
            drained_for: None,
            drained_by: None,
            drained_since: None,
            silent_for: None,
            memory: MiB(40_960),
            memory_used: None,
            reserved: MiB(0),
            available: MiB(40_960),
            utilisation: Utilisation::default(),
            power: None,
            energy: None,
            temperature: None,
            throttling: std::collections::BTreeSet::new(),
            tenants: Vec::new(),
            foreign: 0,
            obstacles: Vec::new(),
            closed: Vec::new(),
            counters: String::new(),
        }
    }

    #[test]
    fn unknown_gpus_are_simulated_as_the_nearest_by_memory() {
        let machine = Machine::of(&[gpu(0, "NVIDIA A100-SXM4-40GB"), gpu(1, "something new")]).unwrap();
        assert_eq!(machine.servers.to_string(), "2xA100-40GB");
        assert_eq!(machine.notes, ["something new is unknown: it is simulated as A100-40GB, the nearest by memory."]);
        assert!(Machine::of(&[]).is_err());
        let cut = GpuDetail { mode: CollocationMode::Mig, ..gpu(0, "NVIDIA A100-SXM4-40GB") };
        assert!(Machine::of(&[cut]).unwrap_err().to_string().contains("MIG"));
    }

    fn minute(minute: u64, power: Option<f64>) -> MinuteMean {
        MinuteMean {
            device: DeviceId::gpu(ServerId(0), 0),
            minute: UnixMinute(minute),
            readings: 12,
            memory_used: MiB(0),
            utilisation: Utilisation::default(),
            power: power.map(Watts),
        }
    }

    #[test]
    fn energy_is_power_over_time_and_unknown_with_few_samples() {
        let minutes = [minute(1, Some(100.0)), minute(2, Some(300.0))];
        assert_eq!(energy(&minutes, (90.0, 150.0)), Some(30.0 * 100.0 + 30.0 * 300.0));
        assert_eq!(energy(&minutes, (60.0, 190.0)), Some(24_000.0 * 130.0 / 120.0));
        assert_eq!(energy(&minutes, (0.0, 180.0)), None);
        assert_eq!(energy(&[minute(1, None)], (60.0, 120.0)), None);
    }
}
