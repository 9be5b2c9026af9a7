//! What a container of modules does besides running its children, told by its class.

/// What a container does besides running its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing, or nothing that is known.
    Plain,
    /// Only groups a few layers of a block, such as a convolution with its normalisation.
    Wrapper,
    /// As a wrapper, with a ReLU in place that no module stands for (`BasicConv2d` of torchvision).
    WrapperWithActivation,
    /// Adds its input to its result.
    Residual,
    /// Multiplies its input by a gate computed from it.
    SqueezeExcite,
    /// Normalises, then runs its children, an activation among them.
    NormalisedActivation,
    /// Mixes query, key and value.
    Attention,
    /// Joins the results of branches; the last branch begins with a mean over windows that no module stands for.
    PooledBranches,
    /// Joins the results of branches, two of which fork at their end (`InceptionE` of torchvision).
    ForkedBranches,
    /// Joins the results of branches.
    Branches,
    /// Has a result of its own that nothing else reads, such as a classifier half way.
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

    /// Whether it is one of the blocks that a model repeats: the unit of gradient checkpointing.
    pub(super) const fn is_block(self) -> bool {
        matches!(self, Self::Residual | Self::PooledBranches | Self::ForkedBranches | Self::Branches)
    }

    /// Whether it joins branches that read the same input.
    pub(super) const fn joins_branches(self) -> bool {
        matches!(self, Self::PooledBranches | Self::ForkedBranches | Self::Branches)
    }
}
