//! Software stacks: memory of CUDA, cuDNN and cuBLAS outside PyTorch's allocator, and the workspaces they request from it.

mod convolution;
mod workspace;

pub use convolution::{Convolution, Direction};
pub use workspace::{Band, ConvolutionWorkspace, Filter};

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

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
    /// Workspace of convolutions.
    #[serde(default)]
    pub convolutions: ConvolutionWorkspace,
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

static BUILT_IN: LazyLock<Vec<Stack>> = LazyLock::new(|| Stack::read(include_str!("stacks.toml")).unwrap_or_default());

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
