//! A server: its devices, how they are linked, and its host.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::host::Host;
use super::topology::Topology;
use crate::config::Config;
use crate::device::Device;
use crate::job::HostClaim;
use crate::units::{MiB, Time, Watts};
use crate::{AttemptId, DeviceId, ServerId};

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Its name.
    pub id: ServerId,
    /// How many jobs without GPUs it runs at once; unset: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_jobs: Option<u32>,
    /// Cores of its host that jobs may book; unset: not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Memory of its host that jobs may book; unset: not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<MiB>,
    /// How its GPUs are linked, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// When it ends, if that is known: its GPUs were given for some hours, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Time>,
}

impl ServerSpec {
    /// A server without further properties.
    pub const fn new(id: ServerId) -> Self {
        Self { id, cpu_jobs: None, cores: None, host_memory: None, topology: None, ends: None }
    }
}

/// A server with its devices in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// What it is.
    pub spec: ServerSpec,
    /// Its devices.
    pub devices: Vec<Device>,
    /// It is short of memory, CPU or disk.
    pub host_short: bool,
    /// It ends soon, and takes nothing new.
    pub ending: bool,
    /// Attempts without GPUs that run on it.
    pub(super) cpu_attempts: BTreeSet<AttemptId>,
    /// Its host's cores and memory.
    pub host: Host,
    /// What is left of its power budget as predicted; without one, more than there is.
    pub(super) power_left: Watts,
}

impl Server {
    pub(super) fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            devices: Vec::new(),
            host_short: false,
            ending: false,
            cpu_attempts: BTreeSet::new(),
            host: Host::default(),
            power_left: Watts(f64::INFINITY),
        }
    }

    pub(super) fn index_of(&self, id: DeviceId) -> Option<usize> {
        // Mostly, GPUs are whole and have the numbers from 0 on.
        let place = usize::from(id.gpu.ordinal);
        if self.devices.get(place).is_some_and(|device| device.id() == id) {
            return Some(place);
        }
        self.devices.binary_search_by_key(&id, Device::id).ok()
    }

    pub(super) fn add(&mut self, mut device: Device) {
        (device.host_short, device.ending) = (self.host_short, self.ending);
        // An instance is as lost or drained as its GPU.
        if let Some(whole) = self.devices.iter().find(|other| other.id().gpu == device.id().gpu && other.id().instance.is_none()) {
            (device.lost, device.drained) = (whole.lost, whole.drained);
        }
        let place = self.devices.partition_point(|other| other.id() < device.id());
        self.devices.insert(place, device);
        self.mark_partitioned();
    }

    pub(super) fn remove(&mut self, id: DeviceId) {
        self.devices.retain(|device| device.id() != id);
        self.mark_partitioned();
    }

    /// A GPU with instances is no device of its own.
    fn mark_partitioned(&mut self) {
        let partitioned: Vec<_> =
            self.devices.iter().filter(|device| device.id().instance.is_some()).map(|device| device.id().gpu).collect();
        for device in &mut self.devices {
            device.partitioned = device.id().instance.is_none() && partitioned.contains(&device.id().gpu);
        }
    }

    pub(crate) fn set_host_short(&mut self, short: bool) {
        self.host_short = short;
        self.devices.iter_mut().for_each(|device| device.host_short = short);
    }

    /// It takes nothing new from now on.
    pub(crate) fn set_ending(&mut self) {
        self.ending = true;
        self.devices.iter_mut().for_each(|device| device.ending = true);
    }

    /// The attempts on it; one on several devices is there several times.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        let on_gpus = self.devices.iter().flat_map(|device| device.tenants.iter().map(|tenant| tenant.attempt));
        on_gpus.chain(self.cpu_attempts.iter().copied())
    }

    /// How many jobs without GPUs run on it.
    pub fn cpu_jobs(&self) -> usize {
        self.cpu_attempts.len()
    }

    /// Updates what is left of its power budget. Returns whether that is more than before.
    pub(super) fn review_power(&mut self, config: &Config) -> bool {
        let left = config.power.budget.map_or(f64::INFINITY, |budget| budget.0 - self.predicted_draw().0);
        let before = std::mem::replace(&mut self.power_left, Watts(left));
        self.power_left > before
    }

    /// All that jobs may book of its host.
    pub(crate) fn host_total(&self) -> HostClaim {
        let uncounted = HostClaim::UNLIMITED;
        HostClaim { cores: self.spec.cores.unwrap_or(uncounted.cores), memory: self.spec.host_memory.unwrap_or(uncounted.memory) }
    }

    /// What is not booked of its host.
    pub(crate) fn host_unbooked(&self) -> HostClaim {
        self.host_total().without(self.host.booked)
    }

    /// Whether a job without GPUs may start, whatever it claims.
    pub fn takes_cpu_job(&self) -> bool {
        !self.host_short && !self.ending && self.spec.cpu_jobs.is_none_or(|limit| self.cpu_jobs() < limit as usize)
    }
}
