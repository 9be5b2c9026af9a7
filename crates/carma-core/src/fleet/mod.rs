//! All servers and their devices, with an index that finds room without looking at each.

mod draw;
mod host;
mod largest;
mod open_devices;
mod server;
mod summary;
mod topology;
mod tree;

pub use host::Host;
use open_devices::OpenDevices;
pub use server::{Server, ServerSpec};
pub(crate) use summary::{OfferKind, Summary};
pub use topology::{Link, Topology};
use tree::Tree;

use std::collections::BTreeSet;
use std::ops::Range;
use std::slice;

use crate::config::Config;
use crate::device::{Device, DeviceSpec, grown_stale};
use crate::obstacle::PlacementKind;
use crate::policy::Score;
use crate::tenant::Work;
use crate::units::{MiB, Time};
use crate::{AttemptId, DeviceId, ServerId};

/// The servers, in order of their names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fleet {
    servers: Vec<Server>,
    tree: Tree,
    open: OpenDevices,
    gpu_count: usize,
    /// A job may fit somewhere that did not fit when this was last read.
    improved: bool,
}

impl Fleet {
    /// Every server.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Every device, in order.
    pub fn devices(&self) -> impl Iterator<Item = &Device> + Clone {
        self.servers.iter().flat_map(|server| server.devices.iter())
    }

    /// Where a server is, or would be.
    pub(crate) fn server_place(&self, id: ServerId) -> Result<usize, usize> {
        // Mostly, servers have the numbers from 0 on.
        let place = id.0 as usize;
        if self.servers.get(place).is_some_and(|server| server.spec.id == id) {
            return Ok(place);
        }
        self.servers.binary_search_by_key(&id, |server| server.spec.id)
    }

    fn server_index(&self, id: ServerId) -> Option<usize> {
        self.server_place(id).ok()
    }

    /// A server by name.
    pub fn server(&self, id: ServerId) -> Option<&Server> {
        Some(&self.servers[self.server_index(id)?])
    }

    /// A device by name.
    pub fn device(&self, id: DeviceId) -> Option<&Device> {
        let server = self.server(id.server())?;
        Some(&server.devices[server.index_of(id)?])
    }

    /// The instances that a GPU is partitioned into.
    pub(crate) fn instances<'a>(&'a self, gpu: &'a Device) -> impl Iterator<Item = &'a Device> + Clone {
        let server = self.server(gpu.id().server()).filter(|_| gpu.partitioned);
        let devices = server.into_iter().flat_map(|server| &server.devices);
        devices.filter(|device| device.id().instance.is_some() && device.id().gpu == gpu.id().gpu)
    }

    /// The memory of the largest device that is not lost.
    pub(crate) fn largest(&self) -> MiB {
        self.tree.root().map_or(MiB::ZERO, Summary::largest)
    }

    /// The most memory that this many devices can each have, in one server or, if needed, in several.
    pub(crate) fn largest_for(&self, width: usize, may_span: bool) -> MiB {
        if width <= 1 {
            return self.largest();
        }
        let in_one = self.best(
            0..self.servers.len(),
            |summary| summary.may_hold(OfferKind::Capacity, width, |_| MiB::ZERO).then(|| Score(u64::MAX - summary.largest().0)),
            |server| nth_largest(server.devices.iter(), width).map(|memory| (Score(u64::MAX - memory.0), memory)),
        );
        let spanning = || may_span.then(|| nth_largest(self.devices(), width)).flatten();
        in_one.or_else(spanning).unwrap_or_default()
    }

    /// How many GPUs there are, however they are cut.
    pub(crate) const fn gpu_count(&self) -> usize {
        self.gpu_count
    }

    fn knows_gpu(&self, id: DeviceId) -> bool {
        self.server(id.server()).is_some_and(|server| server.devices.iter().any(|device| device.id().gpu == id.gpu))
    }

    /// How many devices are open this way, over all servers.
    pub(crate) const fn open_devices(&self, kind: PlacementKind) -> usize {
        self.open.count(kind)
    }

    /// The smallest device memory above this one, where there is any.
    pub(crate) fn next_larger(&self, than: MiB) -> Option<MiB> {
        self.devices().filter(|device| device.exists()).map(|device| device.spec.memory).filter(|memory| *memory > than).min()
    }

    /// Adds a server, which must be new.
    pub(crate) fn add_server(&mut self, spec: ServerSpec) {
        let place = self.servers.partition_point(|server| server.spec.id < spec.id);
        self.servers.insert(place, Server::new(spec));
        // Servers mostly come in order; there is a leaf for the next one until their number has doubled.
        let last = place + 1 == self.servers.len();
        if last && self.tree.has_leaf(place) {
            self.tree.set(place, &Summary::of(&self.servers[place]));
        } else {
            self.tree = Tree::new(self.servers.iter().map(Summary::of));
        }
    }

    /// Takes a server away, with its devices. Nothing of it is kept.
    pub(crate) fn remove_server(&mut self, id: ServerId) {
        let Some(place) = self.server_index(id) else { return };
        let server = self.servers.remove(place);
        self.open.remove(&server.devices);
        let mut gpus: Vec<_> = server.devices.iter().map(|device| device.id().gpu).collect();
        gpus.dedup();
        self.gpu_count -= gpus.len();
        // Every later server has another leaf now. As large a tree as the servers need, however many there were.
        self.tree = Tree::new(self.servers.iter().map(Summary::of));
    }

    /// Adds a device, which must be new, to a server, which must not.
    pub(crate) fn add_device(&mut self, spec: DeviceSpec, config: &Config, now: Time) {
        self.gpu_count += usize::from(!self.knows_gpu(spec.id));
        self.update_server(spec.id.server(), config, now, |server| server.add(Device::new(spec)));
    }

    /// Takes a device away.
    pub(crate) fn remove_device(&mut self, id: DeviceId, config: &Config, now: Time) {
        self.update_server(id.server(), config, now, |server| server.remove(id));
        self.gpu_count -= usize::from(!self.knows_gpu(id));
    }

    /// Changes one device and keeps what is derived from it.
    pub(crate) fn update<R>(&mut self, id: DeviceId, config: &Config, now: Time, change: impl FnOnce(&mut Device) -> R) -> Option<R> {
        let place = self.server_index(id.server())?;
        let server = &mut self.servers[place];
        let index = server.index_of(id)?;
        let device = &mut server.devices[index];
        let before = (device.availability(), device.exists(), server.power_left);
        let was_stale = grown_stale(device, config, now).is_some();
        self.open.remove(slice::from_ref(device));
        let result = change(device);
        device.refresh(config, now);
        self.open.add(slice::from_ref(device));
        // A sample of a steady GPU changes nothing that a search could see.
        self.improved |= was_stale || device.availability().improves_on(&before.0);
        let (availability, exists) = (device.availability(), device.exists());
        self.improved |= server.review_power(config);
        if (availability, exists, server.power_left) != before {
            self.tree.set(place, &Summary::of(server));
        }
        Some(result)
    }

    /// The work of an attempt on a device. No search depends on it.
    pub(crate) fn work_mut(&mut self, id: DeviceId, attempt: AttemptId) -> Option<&mut Work> {
        let place = self.server_index(id.server())?;
        let server = &mut self.servers[place];
        let index = server.index_of(id)?;
        server.devices[index].tenant_mut(attempt)?.work.as_mut()
    }

    /// Counts an attempt without GPUs in.
    pub(crate) fn add_cpu_attempt(&mut self, id: ServerId, attempt: AttemptId) {
        self.update_cpu_attempts(id, |server| server.cpu_attempts.insert(attempt));
    }

    /// Counts an attempt without GPUs out.
    pub(crate) fn remove_cpu_attempt(&mut self, id: ServerId, attempt: AttemptId) {
        self.update_cpu_attempts(id, |server| server.cpu_attempts.remove(&attempt));
    }

    fn update_cpu_attempts(&mut self, id: ServerId, change: impl FnOnce(&mut Server) -> bool) {
        if let Some(place) = self.server_index(id) {
            let server = &mut self.servers[place];
            change(server);
            self.tree.set(place, &Summary::of(server));
        }
    }

    /// Changes what is known or booked of a server's host.
    pub(crate) fn update_host(&mut self, id: ServerId, change: impl FnOnce(&mut Host)) {
        let Some(place) = self.server_index(id) else { return };
        let server = &mut self.servers[place];
        let (booked, available) = (server.host.booked, server.host.available());
        change(&mut server.host);
        // What is not known is no limit.
        self.improved |= available.is_some_and(|before| server.host.available() > Some(before));
        if server.host.booked != booked {
            self.tree.set(place, &Summary::of(server));
        }
    }

    /// Changes a server or all of its devices, and keeps what is derived from them.
    pub(crate) fn update_server(&mut self, id: ServerId, config: &Config, now: Time, change: impl FnOnce(&mut Server)) {
        let Some(place) = self.server_index(id) else { return };
        let server = &mut self.servers[place];
        self.open.remove(&server.devices);
        change(server);
        self.improved = true;
        server.devices.iter_mut().for_each(|device| device.refresh(config, now));
        self.open.add(&server.devices);
        server.review_power(config);
        self.tree.set(place, &Summary::of(server));
    }

    /// Whether a job may fit somewhere that did not fit when this was last read.
    pub(crate) fn take_improved(&mut self) -> bool {
        std::mem::take(&mut self.improved)
    }

    /// Whether what is derived from the servers agrees with them, for checks.
    pub(crate) fn adds_up(&self) -> bool {
        let gpus: BTreeSet<_> = self.devices().map(|device| device.id().gpu).collect();
        let tree = if self.servers.is_empty() { self.tree.clone() } else { Tree::new(self.servers.iter().map(Summary::of)) };
        let mut open = OpenDevices::default();
        open.add(self.devices());
        self.gpu_count == gpus.len() && self.open == open && self.tree == tree
    }

    /// Every server that `may` does not rule out.
    pub(crate) fn visit<'a>(&'a self, may: impl Fn(&Summary) -> bool, mut visit: impl FnMut(&'a Server)) {
        // None is ever found to be best, so none is skipped for another.
        let none: Option<()> = self.best(
            0..self.servers.len(),
            |summary| may(summary).then_some(Score(0)),
            |server| {
                visit(server);
                None
            },
        );
        debug_assert!(none.is_none());
    }

    /// The best server by `visit`, which is called only for servers that `bound` does not rule out: see [`Tree::best`].
    pub(crate) fn best<'a, T>(
        &'a self,
        range: Range<usize>,
        bound: impl Fn(&Summary) -> Option<Score>,
        mut visit: impl FnMut(&'a Server) -> Option<(Score, T)>,
    ) -> Option<T> {
        self.tree.best(range, &bound, &mut |place| visit(&self.servers[place]))
    }
}

fn nth_largest<'a>(devices: impl Iterator<Item = &'a Device>, width: usize) -> Option<MiB> {
    let mut memory: Vec<MiB> = devices.filter(|device| device.exists()).map(|device| device.spec.memory).collect();
    memory.sort_unstable();
    memory.len().checked_sub(width).map(|place| memory[place])
}
