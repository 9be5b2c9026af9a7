//! One measured training run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::networks::Network;
use crate::model::Model;
use crate::training::Training;

/// One network trained at one batch size, and the memory it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// What the table calls it.
    pub name: String,
    /// Samples in a batch.
    pub batch: u64,
    /// Peak memory of the device in MiB; of a crashed run, the last reading before the crash.
    pub measured: Option<f64>,
    /// Whether it ran out of memory.
    pub crashed: bool,
    /// What was trained.
    pub network: Network,
    /// Kind of network, where the table says so.
    pub family: Option<Family>,
    /// Utilisation while it ran, where recorded.
    pub counters: Option<Counters>,
    /// Trainable parameters as the table counts them.
    pub stated_parameters: Option<u64>,
    /// Where the memory comes from.
    pub label: Label,
    /// What published estimators answered, in MiB: name and answer.
    pub published: Vec<(&'static str, f64)>,
}

impl Observation {
    /// The network's layers, where the table describes them (TIMM and real models are known by name only).
    pub fn model(&self) -> Option<Model> {
        let mut model = self.network.build()?;
        model.stated_parameters = self.stated_parameters;
        model.stated_batch = Some(self.batch);
        model.name = Some(self.name.clone());
        Some(model)
    }

    /// How it was trained: Adam, four-byte floats, one GPU.
    pub fn training(&self) -> Training {
        let sequence = match &self.network {
            Network::Transformer(network) => Some(network.sequence),
            _ => None,
        };
        // The random networks' layers were listed in the process that then trained them, by a forward pass over so many samples.
        let rehearsal = match self.network {
            Network::Mlp(_) | Network::Cnn(_) => Some(2),
            Network::Transformer(_) => Some(1),
            _ => None,
        };
        Training { batch: self.batch, sequence, input: self.network.input(), rehearsal, ..Training::default() }
    }
}

/// Kinds of networks that behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Fully connected layers.
    Mlp,
    /// Convolutions.
    Cnn,
    /// Attention over sequences.
    Transformer,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mlp, Self::Cnn, Self::Transformer];
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
            Self::Transformer => "transformer",
        })
    }
}

/// Where an observation's memory comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Read from a device.
    #[default]
    Measured,
    /// From a traced run without a device, replayed through the allocator's model.
    DryRun,
    /// From the layers alone.
    Static,
}

impl Label {
    /// As the tables write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::DryRun => "dry-run",
            Self::Static => "static",
        }
    }

    /// The label of this word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Measured, Self::DryRun, Self::Static].into_iter().find(|label| label.word() == word)
    }
}

/// Means over a run, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Share of time with a kernel on the device (`GPUTL`).
    pub utilisation: f64,
    /// Share of time with the compute engine active (`GRACT`).
    pub engine: f64,
    /// Share of multiprocessors with work (`SMACT`).
    pub smact: f64,
    /// Share of warp slots in use (`SMOCC`).
    pub smocc: f64,
    /// Share of time with the 32-bit floating point pipe active (`FP32A`).
    pub fp32: f64,
}
