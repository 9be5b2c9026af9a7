//! The machine that a measured row comes from: its software stack and GPU.

use carma_estimate::gpu::Gpu;
use carma_estimate::stack::Stack;
use carma_learn::data::{Network, Observation};

/// A stack, and bytes of its GPU.
pub(super) struct Machine {
    pub(super) stack: Stack,
    pub(super) memory: u64,
}

/// The GPU of the published sets, unless a row names its own: A100-40GB, as its driver counts it.
const MEMORY: u64 = 40_536 << 20;

impl Machine {
    /// The stack that a set was measured on, and the row's GPU.
    pub(super) fn of(row: &Observation) -> Self {
        match &row.network {
            Network::Real { .. } => Self::on_a100("pytorch"),
            Network::FullyConnected(_) => Self::on_a100("tensorflow-growth"),
            Network::Xmem { gpu, .. } => Self::without_context(gpu),
            _ => Self::of_random_networks(),
        }
    }

    /// The machine of the random networks and of TIMM's models.
    pub(super) fn of_random_networks() -> Self {
        Self::on_a100("pytorch-eager-kernels")
    }

    fn on_a100(stack: &str) -> Self {
        Self { stack: Stack::named(stack).unwrap_or(&Stack::built_in()[0]).clone(), memory: MEMORY }
    }

    /// The measurements leave the context out: it takes room on the GPU, but is no part of the answer.
    fn without_context(gpu: &str) -> Self {
        let Self { mut stack, mut memory } = Self::on_a100("pytorch");
        if let Some(gpu) = Gpu::named(gpu) {
            (stack, memory) = (stack.on(gpu), gpu.bytes());
        }
        memory = memory.saturating_sub(stack.context_bytes(false));
        stack.context = 0.0;
        Self { stack, memory }
    }

    /// Whether a run that does not fit counts as one above the classes of the published sets.
    pub(super) fn is_of_published_classes(&self) -> bool {
        self.memory == MEMORY
    }
}
