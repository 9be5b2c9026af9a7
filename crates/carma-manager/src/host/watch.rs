//! Readings of the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use carma_core::MiB;
use thiserror::Error;

use super::cgroup::{MemoryLimit, memory_limit};
use super::proc::{CpuTimes, Memory, cpu_times, load, memory, pressure};
use super::reading::{Disk, HostReading};

/// A file of the host that cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {path}", path = path.display())]
pub struct Unreadable {
    path: PathBuf,
    source: Option<io::Error>,
}

/// How often the host is read.
const PERIOD: Duration = Duration::from_secs(1);

/// Reads the host and the disks of some folders.
#[derive(Debug)]
pub struct HostWatch {
    root: PathBuf,
    folders: Vec<PathBuf>,
    times: Option<CpuTimes>,
}

impl HostWatch {
    /// Of this host.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self::at("/", folders)
    }

    /// Of a host whose `/proc` and `/sys` are under this folder.
    pub fn at(root: impl Into<PathBuf>, folders: Vec<PathBuf>) -> Self {
        Self { root: root.into(), folders, times: None }
    }

    /// Reads the host. A disk that cannot be read is skipped: it may return.
    pub fn read(&mut self) -> Result<HostReading, Unreadable> {
        let host = self.parse("proc/meminfo", memory)?;
        let own_groups = fs::read_to_string(self.root.join("proc/self/cgroup")).unwrap_or_default();
        let memory = within(host, memory_limit(&own_groups, &self.root.join("sys/fs/cgroup")));
        let times = self.parse("proc/stat", cpu_times)?;
        let busy = self.times.replace(times).and_then(|before| times.busy_since(before));
        Ok(HostReading {
            cores: thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            busy,
            load: self.parse("proc/loadavg", load)?,
            cpu_pressure: self.parse("proc/pressure/cpu", pressure).ok(),
            memory_total: memory.total,
            memory_available: memory.available,
            memory_pressure: self.parse("proc/pressure/memory", pressure).ok(),
            swap_total: memory.swap_total,
            swap_free: memory.swap_free,
            disks: self.folders.iter().filter_map(|folder| disk(folder)).collect(),
        })
    }

    fn parse<T>(&self, path: &str, parse: fn(&str) -> Option<T>) -> Result<T, Unreadable> {
        let path = self.root.join(path);
        match fs::read_to_string(&path) {
            Ok(text) => parse(&text).ok_or(Unreadable { path, source: None }),
            Err(error) => Err(Unreadable { path, source: Some(error) }),
        }
    }
}

/// The host's memory, within the limit.
fn within(host: Memory, memory_limit: Option<MemoryLimit>) -> Memory {
    memory_limit.map_or(host, |allowed| Memory {
        total: host.total.min(allowed.limit),
        available: host.available.min(allowed.available),
        ..host
    })
}

fn disk(folder: &Path) -> Option<Disk> {
    let status = rustix::fs::statvfs(folder).ok()?;
    let size = |blocks: u64| MiB(blocks.saturating_mul(status.f_frsize) >> 20);
    Some(Disk { folder: folder.to_owned(), total: size(status.f_blocks), free: size(status.f_bavail) })
}

/// Reads the host periodically on its own thread: a disk that hangs must not block the engine or the agent. Ends when `take` returns false.
pub(crate) fn watch(folders: Vec<PathBuf>, take: impl Fn(HostReading) -> bool + Send + 'static) -> io::Result<()> {
    let mut watch = HostWatch::new(folders);
    let run = move || {
        // A host that cannot be read is not known to be short.
        while watch.read().map_or(true, &take) {
            thread::sleep(PERIOD);
        }
    };
    thread::Builder::new().name("host".to_owned()).spawn(run).map(drop)
}
