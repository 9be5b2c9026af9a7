//! What tells jobs apart that should use a GPU alike.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::model::Model;
use crate::training::Training;

/// A stable hash of what decides how a job uses its GPUs. Equal jobs have equal signatures, on any machine and in any later run.
///
/// ```
/// use carma_estimate::history::Signature;
/// let command = ["python", "train.py", "--batch", "64"].map(str::to_owned);
/// let signature = Signature::of_command(&command, "/home/ann".as_ref());
/// assert_eq!(signature.to_string().parse(), Ok(signature));
/// assert_ne!(signature, signature.on_gpus(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature([u8; 16]);

/// Not 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a signature of 32 hexadecimal digits")]
pub struct NotASignature(String);

impl Signature {
    /// Of layers and all that is said about their training: batch, optimizer, precision, GPUs ... Names do not count.
    pub fn of_model(model: &Model, training: &Training) -> Self {
        let mut hash = Hash::new("model");
        hash.add(&model.inputs);
        for layer in &model.layers {
            // The unit of recomputation, and of nothing else.
            let block = layer.block.as_ref().filter(|_| training.checkpointing);
            let shape = (&layer.kind, &layer.inputs, &layer.output, layer.element);
            hash.add(&(shape, layer.parameters, &layer.tensors, layer.in_place, block));
        }
        hash.add(training);
        hash.finish()
    }

    /// Of a command line and the directory it runs in, where nothing is known of the model.
    pub fn of_command(command: &[String], directory: &Path) -> Self {
        let mut hash = Hash::new("command");
        hash.bytes(directory.as_os_str().as_encoded_bytes());
        for word in command {
            hash.bytes(word.as_bytes());
        }
        hash.finish()
    }

    /// The same job on so many GPUs, where its command does not say so.
    #[must_use]
    pub fn on_gpus(self, gpus: u64) -> Self {
        let mut hash = Hash::new("gpus");
        hash.bytes(&self.0);
        hash.bytes(&gpus.to_le_bytes());
        hash.finish()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl FromStr for Signature {
    type Err = NotASignature;

    fn from_str(text: &str) -> Result<Self, NotASignature> {
        let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok())).collect();
        let bytes: Option<Vec<u8>> =
            digits.map(|digits| digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect());
        let whole = bytes.filter(|_| text.len() == 32).and_then(|bytes| bytes.try_into().ok());
        whole.map(Self).ok_or_else(|| NotASignature(text.chars().take(40).collect()))
    }
}

/// Pieces, each with its length before it: no two lists of pieces look the same in a row.
struct Hash(Sha256);

impl Hash {
    fn new(what: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.bytes(what.as_bytes());
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn add(&mut self, piece: &impl Serialize) {
        // None of what is added can fail to be written: no map, no foreign type.
        self.bytes(&serde_json::to_vec(piece).unwrap_or_default());
    }

    fn finish(self) -> Signature {
        let digest = self.0.finalize();
        Signature(std::array::from_fn(|place| digest[place]))
    }
}
