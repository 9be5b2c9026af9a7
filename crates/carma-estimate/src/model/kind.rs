//! Kinds of layers, as far as they affect memory and compute.

use serde::{Deserialize, Serialize};

/// Kind of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LayerKind {
    /// A convolution over images (1-d ones have a height of 1; 3-d ones fold their depth into the height).
    Convolution {
        /// Height and width of the filter.
        kernel: [u64; 2],
        /// Stride of the filter.
        stride: [u64; 2],
        /// Groups of channels; one group per channel is depthwise.
        groups: u64,
        /// Whether it is transposed (`ConvTranspose2d`).
        transposed: bool,
    },
    /// A matrix product with weights.
    Linear,
    /// A product of two tensors that are both activations.
    MatrixProduct,
    /// An embedding: a table lookup by index.
    Embedding,
    /// Normalisation over some dimensions.
    Normalisation(Normalisation),
    /// An elementwise function.
    Activation(Activation),
    /// Zeroes elements at random while training.
    Dropout {
        /// Share of elements that are zeroed.
        probability: f64,
    },
    /// Maximum over windows: saves the indices of the maxima.
    MaxPool,
    /// Mean over windows or over everything.
    AveragePool,
    /// Softmax or log-softmax over a dimension.
    Softmax,
    /// Attention by a fused kernel (flash or memory-efficient) over query, key and value, as three inputs or one joint input.
    Attention {
        /// Attention heads.
        heads: u64,
        /// Dropout probability of the scores.
        dropout: f64,
    },
    /// Sum or difference of tensors: saves nothing for the backward pass.
    Add,
    /// Product or quotient of tensors: saves both.
    Multiply,
    /// Concatenates tensors.
    Concatenate,
    /// Reduces dimensions by sum or mean.
    Reduce,
    /// Enlarges by repetition or interpolation.
    Upsample,
    /// Changes the shape, not the elements.
    Reshape(Reshaping),
    /// A recurrent layer run by cuDNN (LSTM, GRU, RNN).
    Recurrent {
        /// Gates per cell: 4 for LSTM, 3 for GRU, 1 for a plain cell.
        gates: u64,
        /// Width of the hidden state.
        hidden: u64,
        /// Stacked layers times directions.
        layers: u64,
    },
    /// Unknown: counted as one saved output, and reported to the user.
    Unknown,
}

/// Kinds of normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Normalisation {
    /// Over the batch; running statistics beside it.
    Batch,
    /// Over features of a sample.
    Layer,
    /// Over groups of channels; instance normalisation too.
    Group,
    /// Root mean square only, composed of elementwise operators.
    RootMeanSquare,
    /// Across neighbouring channels (`LocalResponseNorm`).
    LocalResponse,
}

/// Elementwise functions, grouped by what they save for the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Activation {
    /// Saves its output: ReLU, tanh, sigmoid.
    KeepsOutput,
    /// Saves its input: GELU, `SiLU`, hardswish, `ReLU6` ... In place, it saves a copy of the overwritten input.
    KeepsInput,
    /// Saves its input or, in place, its output: ELU and leaky ReLU.
    KeepsEither,
    /// Composed of several elementwise operators that each save a tensor (such as GPT-2's GELU formula).
    Composed {
        /// Number of saved tensors of the output's size.
        kept: u64,
    },
    /// A gate: splits the features in half and multiplies the halves (`GLU`, `GEGLU`).
    Gated,
}

/// Kinds of reshaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reshaping {
    /// A view: no cost.
    View,
    /// A copy (`contiguous`, `roll`, `permute` followed by `reshape`, padding).
    Copy,
}

impl LayerKind {
    /// The kind of PyTorch's class or function of this name, if the name is sufficient; a convolution gets a 1x1 filter and stride 1.
    ///
    /// ```
    /// use carma_estimate::model::LayerKind;
    /// assert_eq!(LayerKind::of_class("Linear"), LayerKind::Linear);
    /// assert_eq!(LayerKind::of_class("Mystery"), LayerKind::Unknown);
    /// ```
    pub fn of_class(class: &str) -> Self {
        use Activation::{Composed, Gated, KeepsEither, KeepsInput, KeepsOutput};
        let plain = class.to_ascii_lowercase().replace('_', "");
        let plain = plain.trim_end_matches("backward");
        match plain {
            "linear" | "conv1d()" | "nondynamicallyquantizablelinear" | "lazylinear" | "addmm" | "bilinear" | "normlinear" => Self::Linear,
            "conv1d"
            | "conv2d"
            | "conv3d"
            | "conv2dsame"
            | "stdconv2d"
            | "stdconv2dsame"
            | "scaledstdconv2d"
            | "scaledstdconv2dsame"
            | "convolution"
            | "mixedconv2d"
            | "condconv2d" => Self::Convolution { kernel: [1, 1], stride: [1, 1], groups: 1, transposed: false },
            "convtranspose1d" | "convtranspose2d" | "convtranspose3d" => {
                Self::Convolution { kernel: [1, 1], stride: [1, 1], groups: 1, transposed: true }
            }
            "matmul" | "bmm" | "baddbmm" | "mm" | "einsum" => Self::MatrixProduct,
            "embedding" | "embeddingbag" => Self::Embedding,
            "batchnorm1d"
            | "batchnorm2d"
            | "batchnorm3d"
            | "syncbatchnorm"
            | "batchnorm"
            | "batchnormalization"
            | "batchnormact2d"
            | "frozenbatchnorm2d"
            | "frozenbatchnormact2d" => Self::Normalisation(Normalisation::Batch),
            "layernorm" | "layernorm2d" | "bertlayernorm" | "fusedlayernorm" | "nativelayernorm" | "layernormfp32" | "layernorm2dfp32" => {
                Self::Normalisation(Normalisation::Layer)
            }
            "groupnorm" | "groupnorm1" | "groupnormact" | "instancenorm1d" | "instancenorm2d" | "instancenorm3d" => {
                Self::Normalisation(Normalisation::Group)
            }
            "rmsnorm" | "llamarmsnorm" | "t5layernorm" | "mistralrmsnorm" | "qwen2rmsnorm" | "gemmarmsnorm" | "rmsnorm2d"
            | "simplenorm" => Self::Normalisation(Normalisation::RootMeanSquare),
            "localresponsenorm" => Self::Normalisation(Normalisation::LocalResponse),
            "relu" | "tanh" | "sigmoid" | "threshold" | "exp" | "sqrt" => Self::Activation(KeepsOutput),
            "elu" | "selu" | "celu" | "leakyrelu" | "rrelu" => Self::Activation(KeepsEither),
            "gelu" | "geluactivation" | "silu" | "swish" | "mish" | "relu6" | "hardtanh" | "hardswish" | "hardsigmoid" | "softplus"
            | "prelu" | "logsigmoid" | "softsign" | "quickgelu" | "siluactivation" | "gelutanh" | "pytorchgelutanh" | "hardswishme"
            | "swishme" | "mishme" | "log" | "pow" | "abs" | "clamp" => Self::Activation(KeepsInput),
            "newgeluactivation" | "fastgeluactivation" => Self::Activation(Composed { kept: 5 }),
            "glu" | "geglu" | "swiglu" => Self::Activation(Gated),
            "dropout" | "dropout1d" | "dropout2d" | "dropout3d" | "alphadropout" | "featuredropout" | "stabledropout" => {
                Self::Dropout { probability: 0.5 }
            }
            "maxpool1d" | "maxpool2d" | "maxpool3d" | "adaptivemaxpool1d" | "adaptivemaxpool2d" | "maxpool2dsame" => Self::MaxPool,
            "avgpool1d"
            | "avgpool2d"
            | "avgpool3d"
            | "adaptiveavgpool1d"
            | "adaptiveavgpool2d"
            | "adaptiveavgpool3d"
            | "avgpool2dsame"
            | "fastadaptiveavgpool2d"
            | "fastadaptiveavgpool"
            | "globalaveragepool"
            | "globalavgpool2d" => Self::AveragePool,
            "softmax" | "logsoftmax" | "softmax2d" => Self::Softmax,
            "scaleddotproductattention" => Self::Attention { heads: 1, dropout: 0.0 },
            "add" | "sub" | "iadd" | "radd" | "subtract" | "rsub" | "neg" | "addcmul" | "droppath" | "stochasticdepth" | "maskedfill"
            | "maskedfill " | "where" => Self::Add,
            "mul" | "div" | "truediv" | "imul" | "rmul" | "multiply" | "layerscale" | "layerscale2d" | "floatfunctional" => Self::Multiply,
            "cat" | "concat" | "stack" | "concatenate" => Self::Concatenate,
            "mean" | "sum" | "norm" | "var" | "std" | "amax" | "max" | "logsumexp" => Self::Reduce,
            "upsample" | "upsamplingbilinear2d" | "upsamplingnearest2d" | "interpolate" => Self::Upsample,
            "identity" | "flatten" | "unflatten" | "view" | "reshape" | "transpose" | "permute" | "getitem" | "chunk" | "split"
            | "unbind" | "squeeze" | "unsqueeze" | "expand" | "t" | "expandas" | "narrow" | "select" | "movedim" | "detach" | "to"
            | "float" | "viewas" | "unfoldview" => Self::Reshape(Reshaping::View),
            "contiguous" | "roll" | "pad" | "pixelshuffle" | "pixelunshuffle" | "clone" | "repeat" | "unfold" | "fold" | "zeropad2d"
            | "flip" | "channelshuffle" | "gather" | "indexselect" | "takealongdim" | "reflectionpad2d" | "repeatinterleave" => {
                Self::Reshape(Reshaping::Copy)
            }
            "lstm" => Self::Recurrent { gates: 4, hidden: 1, layers: 1 },
            "gru" => Self::Recurrent { gates: 3, hidden: 1, layers: 1 },
            "rnn" => Self::Recurrent { gates: 1, hidden: 1, layers: 1 },
            _ => Self::Unknown,
        }
    }
}
