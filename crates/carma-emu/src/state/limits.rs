//! Memory limits of control groups, as drivers from 615 on enforce them.
//!
//! ```text
//!  hard ─────  an allocation beyond it fails, whatever is free
//!              borrowed: it succeeds while memory is free; the group may be evicted for one that is below its own soft limit
//!  soft ─────
//!              guaranteed
//!  0    ─────
//! ```

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::records::{LimitRecord, Text};
use super::{Place, State, TableFull};

/// Means no hard limit.
pub const NO_HARD_LIMIT: u64 = u64::MAX;

/// The error that a process meets when it was evicted. NVIDIA documents that the driver may evict or kill it, and not the error.
const OUT_OF_MEMORY: u32 = 2;

/// The memory limits of a control group on a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Guaranteed.
    pub soft: u64,
    /// Never exceeded.
    pub hard: u64,
}

impl MemoryLimits {
    /// Limits that limit nothing: setting them clears those before.
    pub const NONE: Self = Self { soft: 0, hard: NO_HARD_LIMIT };
}

impl State<'_> {
    /// Sets the limits of a group on a GPU; [`MemoryLimits::NONE`] clears them.
    pub fn set_memory_limits(&mut self, gpu: usize, group: &Path, limits: MemoryLimits) -> Result<(), TableFull> {
        self.forget_removed_groups();
        let name = Text::new(&group.to_string_lossy());
        let is_it = |record: &&mut LimitRecord| record.used != 0 && record.gpu as usize == gpu && record.group == name;
        let known = self.limits.iter_mut().find(is_it).map(|record| (record.soft, record.hard) = (limits.soft, limits.hard)).is_some();
        match (known, limits == MemoryLimits::NONE) {
            (true, false) | (false, true) => {}
            (true, true) => {
                let gone = self.limits.iter_mut().filter(|record| record.gpu as usize == gpu && record.group == name);
                gone.for_each(|record| record.used = 0);
            }
            (false, false) => {
                let free = self.limits.iter_mut().find(|record| record.used == 0).ok_or(TableFull)?;
                let inode = inode(group).unwrap_or_default();
                *free = LimitRecord { used: 1, gpu: gpu as u32, soft: limits.soft, hard: limits.hard, evictions: 0, inode, group: name };
            }
        }
        Ok(())
    }

    /// The limits of a group on a GPU.
    pub fn memory_limits(&self, gpu: usize, group: &Path) -> Option<MemoryLimits> {
        let name = group.to_string_lossy();
        let record = self.limits_on(gpu).find(|record| record.group.get() == name)?;
        Some(MemoryLimits { soft: record.soft, hard: record.hard })
    }

    /// How often a group was evicted from a GPU.
    pub fn evictions(&self, gpu: usize, group: &Path) -> u64 {
        let name = group.to_string_lossy();
        self.limits_on(gpu).find(|record| record.group.get() == name).map_or(0, |record| record.evictions)
    }

    /// Bytes that the processes of a group hold on a GPU.
    pub fn used_by_group(&self, gpu: usize, group: &Path) -> u64 {
        self.used_by(gpu, &members(group))
    }

    /// Bytes that a process may still allocate by the hard limits of its groups.
    pub(crate) fn limit_room(&self, place: Place, pid: u32) -> u64 {
        let gpu = place.gpu;
        if place.instance.is_some() {
            return u64::MAX;
        }
        let groups = self.limits_on(gpu).filter(|record| record.hard != NO_HARD_LIMIT);
        let room = groups.filter_map(|record| {
            let members = members(&record.group());
            members.contains(&pid).then(|| record.hard.saturating_sub(self.used_by(gpu, &members)))
        });
        room.min().unwrap_or(u64::MAX)
    }

    /// Makes room for an allocation that is within the soft limit of the process's group: groups above theirs are evicted, the one that borrows
    /// most first.
    pub(crate) fn make_room(&mut self, place: Place, pid: u32, wanted: u64) {
        if place.instance.is_some() || self.memory(place).free() >= wanted || self.limits_on(place.gpu).next().is_none() {
            return;
        }
        let gpu = place.gpu;
        let guaranteed = self.limits_on(gpu).any(|record| {
            let members = members(&record.group());
            members.contains(&pid) && self.used_by(gpu, &members).saturating_add(wanted) <= record.soft
        });
        while guaranteed && self.memory(place).free() < wanted {
            let borrowers = self.limits.iter().enumerate().filter(|(_, record)| record.used != 0 && record.gpu as usize == gpu);
            let borrowed = borrowers.filter_map(|(index, record)| {
                let members = members(&record.group());
                let borrowed = self.used_by(gpu, &members).checked_sub(record.soft).filter(|borrowed| *borrowed > 0)?;
                (!members.contains(&pid)).then_some((borrowed, index, members))
            });
            let Some((_, index, members)) = borrowed.max_by_key(|(borrowed, index, _)| (*borrowed, *index)) else { return };
            self.limits[index].evictions += 1;
            let evicted = self.contexts_mut().iter_mut().filter(|context| context.gpu as usize == gpu && members.contains(&context.pid));
            evicted.for_each(|context| (context.bytes, context.busy, context.fault) = (0, 0, OUT_OF_MEMORY));
        }
    }

    fn forget_removed_groups(&mut self) {
        let gone = self.limits.iter_mut().filter(|record| record.used != 0 && !record.is_there());
        gone.for_each(|record| record.used = 0);
    }

    fn limits_on(&self, gpu: usize) -> impl Iterator<Item = &LimitRecord> {
        self.limits.iter().filter(move |record| record.used != 0 && record.gpu as usize == gpu && record.is_there())
    }

    fn used_by(&self, gpu: usize, members: &HashSet<u32>) -> u64 {
        let contexts = self.contexts_at(Place::gpu(gpu));
        contexts.filter(|context| members.contains(&context.pid)).map(|context| context.bytes).sum()
    }
}

impl LimitRecord {
    fn group(&self) -> PathBuf {
        PathBuf::from(self.group.get())
    }

    /// Whether its group still exists. The driver forgets the limits of a group that was removed.
    fn is_there(&self) -> bool {
        inode(&self.group()) == Some(self.inode)
    }
}

/// The number of a folder.
fn inode(folder: &Path) -> Option<u64> {
    fs::metadata(folder).ok().map(|found| found.ino())
}

/// The processes of a group, and of the groups below it.
fn members(group: &Path) -> HashSet<u32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = own.lines().filter_map(|line| line.parse().ok()).collect::<HashSet<u32>>();
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.fold(own, |all, entry| &all | &members(&entry.path()))
}
