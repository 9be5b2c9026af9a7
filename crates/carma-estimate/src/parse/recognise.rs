//! Recognises the format of a description by its content.

use std::fmt;

use super::MOST_BYTES;
use super::error::{ParseError, Problem};

/// Format of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The table of the `torchsummary` package.
    TorchSummary,
    /// The tree of the `torchinfo` package.
    TorchInfo,
    /// `print(model)` of PyTorch.
    ModuleRepr,
    /// `config.json` of Hugging Face.
    HuggingFaceConfig,
    /// An exported graph.
    Onnx,
    /// The header of a weights file.
    SafeTensors,
    /// A task file of CARMA.
    Rad,
    /// Our own TOML.
    Toml,
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TorchSummary => "torchsummary",
            Self::TorchInfo => "torchinfo",
            Self::ModuleRepr => "print(model)",
            Self::HuggingFaceConfig => "config.json",
            Self::Onnx => "ONNX",
            Self::SafeTensors => "safetensors",
            Self::Rad => "task file",
            Self::Toml => "TOML",
        })
    }
}

/// Number of bytes to inspect for the format.
const FAR_ENOUGH: usize = 64 << 10;

/// The format of these bytes.
pub(super) fn format(bytes: &[u8], file_name: Option<&str>) -> Result<Format, ParseError> {
    if bytes.len() > MOST_BYTES {
        return Err(Problem::TooLarge(bytes.len(), MOST_BYTES).at_byte(MOST_BYTES));
    }
    let named = |ending: &str| file_name.is_some_and(|name| name.len() > ending.len() && name.to_ascii_lowercase().ends_with(ending));
    if is_safetensors(bytes) {
        return Ok(Format::SafeTensors);
    }
    let start = beginning(bytes);
    let Some(text) = start else {
        return if named(".onnx") || is_onnx(bytes) { Ok(Format::Onnx) } else { Err(of_binary(bytes)) };
    };
    if let Some(format) = text_format(text, file_name) {
        return Ok(format);
    }
    match () {
        () if is_onnx(bytes) || named(".onnx") => Ok(Format::Onnx),
        () if named(".toml") => Ok(Format::Toml),
        () if named(".rad") => Ok(Format::Rad),
        () if named(".json") => Ok(Format::HuggingFaceConfig),
        () => Err(Problem::UnknownFormat.at_line(1)),
    }
}

/// The error for binary data; text with invalid bytes gets its own error.
fn of_binary(bytes: &[u8]) -> ParseError {
    let valid = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let line = bytes.iter().take(valid).filter(|&&byte| byte == b'\n').count() + 1;
    if valid > 0 && line > 1 { Problem::NotText.at_line(line) } else { Problem::UnknownFormat.at_byte(valid) }
}

/// The start as text, if it is text.
fn beginning(bytes: &[u8]) -> Option<&str> {
    let window = bytes.get(..FAR_ENOUGH.min(bytes.len()))?;
    let text = match std::str::from_utf8(window) {
        Ok(text) => text,
        // A character cut by the end of the window does not indicate binary data.
        Err(error) if error.error_len().is_none() && bytes.len() > window.len() => {
            std::str::from_utf8(window.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then(|| text.trim_start_matches('\u{feff}'))
}

fn text_format(text: &str, file_name: Option<&str>) -> Option<Format> {
    let content = text.trim_start();
    if content.starts_with('{') {
        return Some(Format::HuggingFaceConfig);
    }
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("Layer (type:depth-idx)") || line.starts_with("Layer (type (var_name)") {
            return Some(Format::TorchInfo);
        }
        if line.starts_with("Layer (type)") {
            return Some(Format::TorchSummary);
        }
        if line.starts_with("├─") || line.starts_with("└─") {
            return Some(Format::TorchInfo);
        }
        if line == "[[layer]]" || line.starts_with("format = \"carma-model") || line == "[training]" {
            return Some(Format::Toml);
        }
        if line.starts_with("conda activate") {
            return Some(Format::Rad);
        }
        if is_module(line) {
            return Some(Format::ModuleRepr);
        }
    }
    let rad = file_name.is_some_and(|name| name.to_ascii_lowercase().ends_with(".rad"));
    (!rad && looks_like_toml(content)).then_some(Format::Toml)
}

/// `ResNet(` or `(conv1): Conv2d(3, 64, ...)`: a class name with an opening bracket, unlike a sentence.
fn is_module(line: &str) -> bool {
    let line = line.strip_prefix('(').and_then(|rest| rest.split_once("): ")).map_or(line, |(_, module)| module);
    line.split_once('(').is_some_and(|(class, rest)| {
        !class.is_empty()
            && class.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && class.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.')
            && (rest.is_empty() || rest.contains(')'))
    })
}

fn looks_like_toml(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')).is_some_and(|line| {
        line.split_once('=').is_some_and(|(key, value)| {
            let key = key.trim();
            !key.is_empty()
                && !value.trim().is_empty()
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        })
    })
}

/// Eight bytes of length, then a JSON object.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return false };
    u64::from_le_bytes(*length) < (1 << 40) && rest.first() == Some(&b'{') && length[6..] == [0, 0]
}

/// The protobuf message of a model: its version first, then producer or graph.
fn is_onnx(bytes: &[u8]) -> bool {
    matches!(bytes, [0x08, version, next, ..] if *version < 32 && matches!(next, 0x12 | 0x1a | 0x22 | 0x28 | 0x3a | 0x42))
}
