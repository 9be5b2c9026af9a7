//! Model descriptions in: each format becomes one [`Model`].

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

/// Bytes of a description at most. Exported graphs hold weights, which is why it is not less.
pub const MOST_BYTES: usize = 1 << 30;

/// Bytes of a description in text at most.
pub const MOST_TEXT: usize = 64 << 20;

/// What a description says.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// What it is written in.
    pub format: Format,
    /// The layers. A `.rad` file has none.
    pub model: Model,
    /// What it says about training.
    pub hints: Hints,
    /// What had to be assumed, in plain sentences.
    pub notes: Vec<String>,
}

/// What a description itself says about training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hints {
    /// Samples in a batch.
    pub batch: Option<u64>,
    /// Tokens in a sample.
    pub sequence: Option<u64>,
    /// Types of weights and activations.
    pub precision: Option<Precision>,
    /// What updates the weights.
    pub optimizer: Option<Optimizer>,
    /// Whether activations are recomputed in the backward pass.
    pub checkpointing: Option<bool>,
    /// Whether elementwise operators are fused.
    pub fusion: Option<bool>,
    /// The software that it runs on, by name.
    pub stack: Option<String>,
    /// GPUs that it asks for.
    pub gpus: Option<u64>,
    /// The file with the model's summary, where the description only points to it.
    pub summary: Option<String>,
}

/// Reads a description. The format is told by its content; the file's name only helps where the content is ambiguous.
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

/// What a format whose only content is layers says.
fn description(format: Format, graph: Graph) -> Result<Description, ParseError> {
    let (model, notes) = graph.finish()?;
    let hints = Hints { batch: model.stated_batch, ..Hints::default() };
    Ok(Description { format, model, hints, notes })
}
