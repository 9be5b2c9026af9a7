//! Errors in model descriptions: the problem, its location and the remedy.

use std::fmt;

use thiserror::Error;

/// A description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct ParseError {
    /// Location of the problem.
    pub place: Place,
    /// The problem.
    pub problem: Problem,
}

/// Location of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a text, counted from 1.
    Line(usize),
    /// A byte of a binary file, counted from 0.
    Byte(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A problem in a description.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Unknown format.
    #[error(
        "not a model description that is known: torchsummary, torchinfo, print(model), config.json, ONNX, safetensors, .rad or carma-model TOML"
    )]
    UnknownFormat,
    /// The file is too large.
    #[error("the description has {0} bytes; at most {1} are read, so shorten it or give a safetensors file by its header only")]
    TooLarge(usize, usize),
    /// Too many layers.
    #[error("there are more than {0} layers, which is the limit: print fewer levels of the model")]
    TooManyLayers(usize),
    /// Modules are nested too deeply.
    #[error("modules are nested more than {0} deep, which is the limit: print fewer levels of the model")]
    TooDeep(usize),
    /// The bytes are not text.
    #[error("not text in UTF-8: save the description as UTF-8")]
    NotText,
    /// Unexpected content.
    #[error("{found:?} is not {expected}")]
    Expected {
        /// The content, shortened if long.
        found: String,
        /// The expected content.
        expected: &'static str,
    },
    /// Required content is missing.
    #[error("{0}")]
    Missing(String),
    /// No layers.
    #[error("it contains no layer: print the whole model")]
    Empty,
    /// Not JSON or TOML, or not of the expected form.
    #[error("{0}")]
    Form(String),
}

impl Problem {
    /// Unexpected content.
    pub(super) fn expected(found: &str, expected: &'static str) -> Self {
        Self::Expected { found: shortened(found), expected }
    }

    /// The problem at a line, counted from 1.
    pub(super) const fn at_line(self, line: usize) -> ParseError {
        ParseError { place: Place::Line(line), problem: self }
    }

    /// The problem at a byte, counted from 0.
    pub(super) const fn at_byte(self, byte: usize) -> ParseError {
        ParseError { place: Place::Byte(byte), problem: self }
    }
}

/// Shortens a long line for an error message.
fn shortened(value: &str) -> String {
    const KEPT: usize = 60;
    if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain("...".chars()).collect() }
}
