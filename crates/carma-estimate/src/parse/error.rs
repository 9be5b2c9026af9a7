//! What is wrong with a model description, where, and what to do about it.

use std::fmt;

use thiserror::Error;

/// A description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct ParseError {
    /// Where it stands.
    pub place: Place,
    /// What is wrong.
    pub problem: Problem,
}

/// Where a problem stands.
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

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// Nothing that is known.
    #[error(
        "not a model description that is known: torchsummary, torchinfo, print(model), config.json, ONNX, safetensors, .rad or carma-model TOML"
    )]
    UnknownFormat,
    /// More bytes than are read.
    #[error("the description has {0} bytes; at most {1} are read, so shorten it or give a safetensors file by its header only")]
    TooLarge(usize, usize),
    /// More layers than any model has.
    #[error("there are more than {0} layers, which is the limit: print fewer levels of the model")]
    TooManyLayers(usize),
    /// Modules within modules within modules.
    #[error("modules are nested more than {0} deep, which is the limit: print fewer levels of the model")]
    TooDeep(usize),
    /// Bytes that are no text.
    #[error("not text in UTF-8: save the description as UTF-8")]
    NotText,
    /// Something else than what has to stand here.
    #[error("{found:?} is not {expected}")]
    Expected {
        /// What stands there, cut short where it is long.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// Something that has to be there.
    #[error("{0}")]
    Missing(String),
    /// No layer at all.
    #[error("there is no layer in it: print the whole model")]
    Empty,
    /// Not JSON or TOML, or not of the expected form.
    #[error("{0}")]
    Form(String),
}

impl Problem {
    /// Something else than what has to stand here.
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

/// A line can be long; what is wrong with it need not be.
fn shortened(value: &str) -> String {
    const KEPT: usize = 60;
    if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain(['…']).collect() }
}
