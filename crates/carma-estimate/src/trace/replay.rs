//! Replays allocation events through the allocator and breaks down the memory.

use serde::Serialize;

use super::{Convolution, Event, Mark, Purpose, StorageId};
use crate::allocator::{Allocation, AllocatorSettings, CachingAllocator, OutOfMemory};
use crate::stack::{MIB, Stack};

/// Result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Replay {
    /// Peak of reserved bytes.
    pub peak_reserved: u64,
    /// Peak of bytes in live blocks.
    pub peak_live: u64,
    /// Peak of bytes in live tensors, without rounding and workspaces: what a fake-tensor run sees.
    pub peak_tensors: u64,
    /// The same, within the forward and backward passes only.
    pub peak_tensors_before_optimizer: u64,
    /// Breakdown of memory at the peak of use.
    pub breakdown: Breakdown,
}

/// Bytes by purpose, at the peak of use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Breakdown {
    /// Parameters and buffers.
    pub weights: u64,
    /// Gradients of parameters.
    pub gradients: u64,
    /// State of the optimizer.
    pub optimizer: u64,
    /// The batch, results of the forward pass, and temporary tensors of the backward pass and the optimizer.
    pub activations: u64,
    /// Workspaces of the libraries that come from the allocator.
    pub workspace: u64,
    /// Peak of reserved memory minus peak of memory in use.
    pub fragmentation: u64,
}

/// Replays `events` on an empty device. Fails if the settings have a capacity and it is not enough.
pub fn replay(events: impl IntoIterator<Item = Event>, settings: AllocatorSettings, stack: &Stack) -> Result<Replay, OutOfMemory> {
    let mut replayer = Replayer::new(settings, stack);
    for event in events {
        replayer.apply(event)?;
    }
    Ok(replayer.found())
}

const PURPOSES: usize = Purpose::Temporaries as usize + 1;

#[derive(Clone, Copy)]
struct Storage {
    allocation: Allocation,
    bytes: u64,
    purpose: Purpose,
}

/// An incremental replay, event by event.
pub(crate) struct Replayer<'stack> {
    stack: &'stack Stack,
    allocator: CachingAllocator,
    /// By storage id: ids are dense, so a vector is faster than a map.
    storages: Vec<Option<Storage>>,
    tensors: u64,
    peak_tensors: u64,
    peak_tensors_before_optimizer: u64,
    phase: Mark,
    /// Whether the user's thread and the backward thread have created their cuBLAS handles.
    matrix_handles: [bool; 2],
    library_workspace: u64,
    used: [u64; PURPOSES],
    /// Memory in use by purpose and in workspaces, at the peak.
    at_peak: ([u64; PURPOSES], u64),
}

impl<'stack> Replayer<'stack> {
    /// Starts on an empty device.
    pub(crate) fn new(settings: AllocatorSettings, stack: &'stack Stack) -> Self {
        Self {
            stack,
            allocator: CachingAllocator::new(settings),
            storages: Vec::new(),
            tensors: 0,
            peak_tensors: 0,
            peak_tensors_before_optimizer: 0,
            phase: Mark::Forward,
            matrix_handles: [false; 2],
            library_workspace: 0,
            used: [0; PURPOSES],
            at_peak: ([0; PURPOSES], 0),
        }
    }

    /// Results so far.
    pub(crate) fn found(&self) -> Replay {
        Replay {
            peak_reserved: self.allocator.peak_reserved(),
            peak_live: self.allocator.peak_live(),
            peak_tensors: self.peak_tensors,
            peak_tensors_before_optimizer: self.peak_tensors_before_optimizer,
            breakdown: self.breakdown(),
        }
    }

    #[inline]
    pub(crate) fn apply(&mut self, event: Event) -> Result<(), OutOfMemory> {
        match event {
            Event::Allocate { storage, bytes, purpose } => self.allocate(storage, bytes, purpose)?,
            Event::Free(storage) => self.free(storage),
            Event::Reveal { storage, purpose } => self.reveal(storage, purpose),
            Event::Convolution(convolution) => self.convolve(&convolution),
            Event::MatrixProduct => self.multiply()?,
            Event::Mark(mark) => self.phase = mark,
        }
        Ok(())
    }

    fn reveal(&mut self, storage: StorageId, purpose: Purpose) {
        if let Some(Some(known)) = self.storages.get_mut(storage as usize) {
            self.used[known.purpose as usize] -= known.bytes;
            self.used[purpose as usize] += known.bytes;
            known.purpose = purpose;
        }
    }

    fn convolve(&mut self, convolution: &Convolution) {
        let workspace = self.stack.convolutions.workspace(convolution);
        // If there is no room, PyTorch falls back to an algorithm without workspace.
        if let Some(allocation) = (workspace > 0).then(|| self.take(workspace, workspace).ok()).flatten() {
            self.allocator.free(allocation);
        }
    }

    /// Each thread's cuBLAS handle allocates its workspace at its first product.
    fn multiply(&mut self) -> Result<(), OutOfMemory> {
        let handle = &mut self.matrix_handles[usize::from(self.phase == Mark::Backward)];
        if !std::mem::replace(handle, true) {
            let workspace = (self.stack.matrix_workspace * MIB) as u64;
            if workspace > 0 {
                self.library_workspace += workspace;
                self.take(workspace, 0)?;
            }
        }
        Ok(())
    }

    /// Allocates, and records the breakdown at each new peak.
    fn take(&mut self, bytes: u64, passing_workspace: u64) -> Result<Allocation, OutOfMemory> {
        let before = self.allocator.peak_live();
        let allocation = self.allocator.allocate(bytes)?;
        if self.allocator.peak_live() > before {
            self.at_peak = (self.used, self.library_workspace + passing_workspace);
        }
        Ok(allocation)
    }

    /// Memory in use at the peak; all other reserved memory counts as idle.
    fn breakdown(&self) -> Breakdown {
        let ([weights, gradients, optimizer, inputs, activations, temporaries], workspace) = self.at_peak;
        let activations = inputs + activations + temporaries;
        let in_use = weights + gradients + optimizer + activations + workspace;
        let fragmentation = self.allocator.peak_reserved().saturating_sub(in_use);
        Breakdown { weights, gradients, optimizer, activations, workspace, fragmentation }
    }

    fn allocate(&mut self, storage: StorageId, bytes: u64, purpose: Purpose) -> Result<(), OutOfMemory> {
        let position = storage as usize;
        self.used[purpose as usize] += bytes;
        let allocation = self.take(bytes, 0)?;
        self.tensors += bytes;
        self.peak_tensors = self.peak_tensors.max(self.tensors);
        if self.phase != Mark::Optimizer {
            self.peak_tensors_before_optimizer = self.peak_tensors_before_optimizer.max(self.tensors);
        }
        let storage = Some(Storage { allocation, bytes, purpose });
        if let Some(place) = self.storages.get_mut(position) {
            *place = storage;
        } else {
            self.storages.resize(position, None);
            self.storages.push(storage);
        }
        Ok(())
    }

    fn free(&mut self, storage: StorageId) {
        if let Some(Storage { allocation, bytes, purpose }) = self.storages.get_mut(storage as usize).and_then(Option::take) {
            self.allocator.free(allocation);
            self.used[purpose as usize] -= bytes;
            self.tensors -= bytes;
        }
    }
}
