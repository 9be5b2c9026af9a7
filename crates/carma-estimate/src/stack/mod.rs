//! Software stacks: what CUDA, cuDNN and cuBLAS take beside PyTorch's allocator, and the workspaces they ask it for.

mod workspace;

pub use workspace::ConvolutionWorkspace;

use serde::{Deserialize, Serialize};

/// What a stack takes on a generation of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Its name in the table.
    pub name: String,
    /// Bytes of the CUDA context with the libraries' kernels loaded.
    pub context: u64,
    /// Further bytes once a convolution has run: cuDNN's kernels.
    pub convolution_context: u64,
    /// Bytes of the workspace that cuBLAS gets from PyTorch's allocator.
    pub matrix_workspace: u64,
    /// Workspace of convolutions.
    pub convolutions: ConvolutionWorkspace,
}
