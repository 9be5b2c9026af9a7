//! Software stacks: memory of CUDA, cuDNN and cuBLAS outside PyTorch's allocator, and the workspaces they request from it.

mod convolution;
mod workspace;

pub use convolution::{Convolution, Direction};
pub use workspace::{Band, ConvolutionWorkspace, Filter, SampleSums};

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::gpu::{Capability, Gpu};

/// The generation that the tables were fitted on: A100.
const MEASURED_ON: Capability = Capability(8, 0);

/// MiB that PyTorch gives each cuBLAS handle from Hopper on.
const HOPPER_MATRIX_WORKSPACE: f64 = 32.0;

/// Bytes in a mebibyte.
pub(crate) const MIB: f64 = (1 << 20) as f64;

/// Memory of a software stack on a generation of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Its name in the table.
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// Source of the numbers.
    pub evidence: Evidence,
    /// How the framework reserves memory from the driver.
    #[serde(default)]
    pub allocation: Allocation,
    /// MiB of the CUDA context with its loaded kernels.
    pub context: f64,
    /// Additional MiB after the first convolution: cuDNN's kernels.
    #[serde(default)]
    pub convolution_context: f64,
    /// MiB of workspace of each cuBLAS handle, from PyTorch's allocator.
    pub matrix_workspace: f64,
    /// Workspace of convolutions where tensor cores are preferred.
    #[serde(default)]
    pub convolutions: ConvolutionWorkspace,
    /// Workspace of convolutions on other GPUs; absent: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_convolutions: Option<ConvolutionWorkspace>,
    /// The kernels of its convolutions.
    #[serde(default, skip_serializing_if = "Kernels::is_default")]
    pub kernels: Kernels,
    /// GPU generations with another context than the stack's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generations: Vec<Generation>,
}

/// Kernels that cuDNN prefers for convolutions of 32-bit floats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernels {
    /// Of tensor cores, where TF32 is much faster than FP32.
    #[default]
    TensorCore,
    /// Others.
    Plain,
}

impl Kernels {
    /// Whether these are the usual ones.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The CUDA context on a generation of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// Its compute capability.
    pub capability: Capability,
    /// MiB of the context with its loaded kernels.
    pub context: f64,
    /// Where the number comes from.
    pub source: String,
}

/// How a framework reserves memory from the driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// PyTorch's caching allocator.
    #[default]
    Caching,
    /// TensorFlow's, with memory growth: regions that double.
    Growth,
}

/// Source of a stack's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Fitted to published measurements.
    Measured,
    /// Derived, not measured.
    Assumed,
    /// Fitted to the user's own measurement.
    Calibrated,
}

/// Why a file of stacks was refused.
#[derive(Debug, thiserror::Error)]
#[error("not a table of stacks: {0}")]
pub struct StackError(#[from] toml::de::Error);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    stack: Vec<Stack>,
}

static BUILT_IN: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let mut stacks = Stack::read(include_str!("stacks.toml")).unwrap_or_default();
    // Jobs and configurations of 0.1 name this one; `--gpu H100` is the same.
    let hopper = stacks.first().zip(Gpu::named("H100")).map(|(stack, gpu)| stack.on(gpu));
    stacks.extend(hopper.map(|stack| Stack { name: "pytorch-hopper".to_owned(), description: "the same on Hopper".to_owned(), ..stack }));
    stacks
});

impl Stack {
    /// The built-in stacks, the default first.
    ///
    /// ```
    /// use carma_estimate::stack::Stack;
    /// assert_eq!(Stack::built_in()[0].name, "pytorch");
    /// ```
    pub fn built_in() -> &'static [Self] {
        &BUILT_IN
    }

    /// The stack of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|stack| stack.name == name)
    }

    /// Parses a table of stacks.
    pub fn read(text: &str) -> Result<Vec<Self>, StackError> {
        Ok(toml::from_str::<Table>(text)?.stack)
    }

    /// Writes a table of stacks.
    pub fn write(stacks: Vec<Self>) -> String {
        toml::to_string(&Table { stack: stacks }).unwrap_or_default()
    }

    /// The same stack on a GPU: the context of its generation, the cuBLAS workspace, and the convolution kernels that cuDNN prefers there.
    /// A calibrated stack keeps its context, which was measured on the user's own GPU.
    #[must_use]
    pub fn on(&self, gpu: &Gpu) -> Self {
        let mut stack = self.clone();
        if self.evidence != Evidence::Calibrated && gpu.capability != MEASURED_ON {
            stack.evidence = Evidence::Assumed;
            if let Some(generation) = self.generations.iter().find(|generation| generation.capability == gpu.capability) {
                stack.context = generation.context;
            }
        }
        if gpu.capability.0 >= 9 && self.matrix_workspace > 0.0 {
            stack.matrix_workspace = HOPPER_MATRIX_WORKSPACE;
        }
        if let Some(plain) = self.plain_convolutions.clone().filter(|_| !gpu.prefers_tensor_cores()) {
            (stack.convolutions, stack.kernels) = (plain, Kernels::Plain);
        }
        stack
    }

    /// Bytes outside the allocator for a model with or without convolutions.
    pub fn context_bytes(&self, convolutions: bool) -> u64 {
        let context = self.context + if convolutions { self.convolution_context } else { 0.0 };
        (context.max(0.0) * MIB) as u64
    }

    /// The same stack with the context computed from a measurement of the whole process and the reserved bytes.
    #[must_use]
    pub fn calibrated(&self, reading: u64, reserved: u64, convolutions: bool) -> Self {
        let beside = reading.saturating_sub(reserved) as f64 / MIB;
        let context = (beside - if convolutions { self.convolution_context } else { 0.0 }).max(0.0);
        Self { name: format!("{}-calibrated", self.name), context, evidence: Evidence::Calibrated, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str) -> &'static Gpu {
        Gpu::named(name).unwrap()
    }

    #[test]
    fn a_stack_follows_the_gpu() {
        let stack = &Stack::built_in()[0];
        assert_eq!(&stack.on(gpu("A100")), stack, "the tables were fitted on it");
        let geforce = stack.on(gpu("RTX 3060"));
        assert_eq!((geforce.context, geforce.evidence), (256.0, Evidence::Assumed));
        assert_eq!(Some(geforce.convolutions), stack.plain_convolutions);
        let hopper = stack.on(gpu("H100"));
        assert_eq!((hopper.matrix_workspace, &hopper.convolutions), (32.0, &stack.convolutions));
        assert_eq!(Stack::named("pytorch-hopper").map(|stack| stack.matrix_workspace), Some(32.0));
    }

    #[test]
    fn a_calibrated_context_is_kept_on_any_gpu() {
        let own = Stack::built_in()[0].calibrated(1000 << 20, 100 << 20, false);
        let moved = own.on(gpu("RTX 4060"));
        assert_eq!((moved.context, moved.evidence), (900.0, Evidence::Calibrated));
    }
}
