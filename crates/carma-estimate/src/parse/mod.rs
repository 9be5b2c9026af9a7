//! Parsers of model descriptions: each format becomes one [`Model`].

mod convolution;
mod error;
mod graph;
mod huggingface;
mod module_repr;
mod onnx;
mod output;
mod own;
mod parameters;
mod rad;
mod recognise;
mod role;
mod safetensors;
mod text;
mod torchinfo;
mod torchsummary;
mod transformer;
mod tree;
mod wiring;

pub use error::{ParseError, Place, Problem};
pub use own::write_toml;
pub use recognise::Format;

use crate::model::Model;
use crate::training::{Optimizer, Precision, Training};
use graph::Graph;

/// Maximum bytes of a description. It is this large because exported graphs contain weights.
pub const MOST_BYTES: usize = 1 << 30;

/// Maximum bytes of a text description.
pub const MOST_TEXT: usize = 64 << 20;

/// A parsed description.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Its format.
    pub format: Format,
    /// The layers. A `.rad` file has none.
    pub model: Model,
    /// Its hints about training.
    pub hints: Hints,
    /// Assumptions, in plain sentences.
    pub notes: Vec<String>,
}

/// Hints about training in a description.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hints {
    /// Samples in a batch.
    pub batch: Option<u64>,
    /// Tokens in a sample.
    pub sequence: Option<u64>,
    /// Types of weights and activations.
    pub precision: Option<Precision>,
    /// The optimizer.
    pub optimizer: Option<Optimizer>,
    /// Whether activations are recomputed in the backward pass.
    pub checkpointing: Option<bool>,
    /// Whether elementwise operators are fused.
    pub fusion: Option<bool>,
    /// The software stack, by name.
    pub stack: Option<String>,
    /// Requested GPUs.
    pub gpus: Option<u64>,
    /// The file with the model's summary, if the description only refers to it.
    pub summary: Option<String>,
}

/// Parses a description. The content determines the format; the file name is used only if the content is ambiguous.
///
/// ```
/// use carma_estimate::{parse, training::Training};
/// let summary = "Layer (type)  Output Shape  Param #\nConv2d-1  [-1, 64, 112, 112]  9,408\nReLU-2  [-1, 64, 112, 112]  0\n";
/// let description = parse::read(summary.as_bytes(), None, &Training::default()).unwrap();
/// assert_eq!(description.model.parameters(), 9_408);
/// ```
pub fn read(bytes: &[u8], file_name: Option<&str>, training: &Training) -> Result<Description, ParseError> {
    let format = recognise::format(bytes, file_name)?;
    let text = || text_of(bytes);
    match format {
        Format::TorchSummary => torchsummary::read(text()?, training).and_then(|graph| description(format, graph)),
        Format::Onnx => onnx::read(bytes, training).and_then(|graph| description(format, graph)),
        Format::TorchInfo => torchinfo::read(text()?, training).and_then(|graph| description(format, graph)),
        Format::ModuleRepr => module_repr::read(text()?, training).and_then(|graph| description(format, graph)),
        Format::HuggingFaceConfig => huggingface::read(text()?, training).and_then(|graph| description(format, graph)),
        Format::Toml => own::read(text()?, training),
        Format::SafeTensors => safetensors::read(bytes, training).and_then(|graph| description(format, graph)),
        Format::Rad => rad::read(text()?),
    }
}

/// The bytes as text.
fn text_of(bytes: &[u8]) -> Result<&str, ParseError> {
    if bytes.len() > MOST_TEXT {
        return Err(Problem::TooLarge(bytes.len(), MOST_TEXT).at_byte(MOST_TEXT));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|&&byte| byte == b'\n').count() + 1;
        Problem::NotText.at_line(line)
    })?;
    Ok(text.trim_start_matches('\u{feff}'))
}

/// The description for a format that contains only layers.
fn description(format: Format, graph: Graph) -> Result<Description, ParseError> {
    let (model, notes) = graph.finish()?;
    let hints = Hints { batch: model.stated_batch, ..Hints::default() };
    Ok(Description { format, model, hints, notes })
}
