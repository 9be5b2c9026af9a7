//! Roles of containers: what they do besides running their children, by class.

/// What a container does besides running its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing, or unknown.
    Plain,
    /// Only groups some layers of a block, such as a convolution with its normalisation.
    Wrapper,
    /// A wrapper with an in-place ReLU without a module (`BasicConv2d` of torchvision).
    WrapperWithActivation,
    /// Adds its input to its result.
    Residual,
    /// Multiplies its input by a gate computed from it.
    SqueezeExcite,
    /// Normalises, then runs its children, including an activation.
    NormalisedActivation,
    /// Mixes query, key and value.
    Attention,
    /// Concatenates branches; the last branch begins with an average pool without a module.
    PooledBranches,
    /// Concatenates branches; two of them fork at their end (`InceptionE` of torchvision).
    ForkedBranches,
    /// Concatenates branches.
    Branches,
    /// Has a result that no other module reads, such as an auxiliary classifier.
    Aside,
}

impl Role {
    /// The role of a class.
    pub(super) fn of_class(class: &str) -> Self {
        match class {
            "InceptionA" | "InceptionC" => return Self::PooledBranches,
            "InceptionE" => return Self::ForkedBranches,
            "InceptionB" | "InceptionD" | "Inception" | "Fire" => return Self::Branches,
            "InceptionAux" => return Self::Aside,
            "BasicConv2d" => return Self::WrapperWithActivation,
            "Sequential" | "ModuleList" | "ModuleDict" => return Self::Plain,
            "SqueezeExcite" | "SqueezeExcitation" | "SEModule" | "SELayer" | "SEBlock" | "SqueezeExcitationBlock" => {
                return Self::SqueezeExcite;
            }
            "BatchNormAct2d" | "GroupNormAct" | "LayerNormAct" | "LayerNormAct2d" | "FrozenBatchNormAct2d" | "EvoNorm2dS0" => {
                return Self::NormalisedActivation;
            }
            "MBConv" | "FusedMBConv" | "MBConvBlock" | "DepthwiseSeparableConv" | "EdgeResidual" | "TransformerEncoderLayer" => {
                return Self::Residual;
            }
            _ => {}
        }
        let has = |part: &str| class.contains(part);
        if has("Attention") {
            Self::Attention
        } else if class.ends_with("Mlp")
            || class.ends_with("MLP")
            || class.ends_with("MLPBlock")
            || ["ConvNorm", "ConvBN", "Conv2dNorm", "ConvBn", "SeparableConv", "BasicConv", "SelectAdaptive", "PatchEmbed", "Conv2dReLU"]
                .iter()
                .any(|part| has(part))
        {
            Self::Wrapper
        } else if has("DecoderBlock") || has("ConvBlock") || has("DenseBlock") {
            Self::Plain
        } else if has("Bottleneck")
            || has("InvertedResidual")
            || has("Residual")
            || class.ends_with("Block")
            || class.ends_with("BasicBlockV2")
        {
            Self::Residual
        } else {
            Self::Plain
        }
    }

    /// Whether it is a repeated block of a model: the unit of gradient checkpointing.
    pub(super) const fn is_block(self) -> bool {
        matches!(self, Self::Residual | Self::PooledBranches | Self::ForkedBranches | Self::Branches)
    }

    /// Whether it concatenates branches that read the same input.
    pub(super) const fn joins_branches(self) -> bool {
        matches!(self, Self::PooledBranches | Self::ForkedBranches | Self::Branches)
    }
}
