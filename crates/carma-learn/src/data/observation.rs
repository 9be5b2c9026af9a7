//! One measured training run.

use serde::{Deserialize, Serialize};

use super::networks::Network;
use carma_estimate::Family;
use carma_estimate::model::Model;
use carma_estimate::training::Training;

/// One network trained at one batch size, and its memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Its name in the table.
    pub name: String,
    /// Samples in a batch.
    pub batch: u64,
    /// Peak memory of the device in MiB; for a crashed run, the last reading before the crash.
    pub measured: Option<f64>,
    /// Whether it ran out of memory.
    pub crashed: bool,
    /// The trained network.
    pub network: Network,
    /// Family of the network, if the table states it.
    pub family: Option<Family>,
    /// Utilisation during the run, if recorded.
    pub counters: Option<Counters>,
    /// Trainable parameters in the table.
    pub stated_parameters: Option<u64>,
    /// Source of the memory value.
    pub label: Label,
    /// Estimates of published estimators, in MiB: name and value.
    pub published: Vec<(&'static str, f64)>,
}

impl Observation {
    /// The network's layers, if the table describes them (TIMM and real models have only a name).
    pub fn model(&self) -> Option<Model> {
        let mut model = self.network.build()?;
        model.stated_parameters = self.stated_parameters;
        model.stated_batch = Some(self.batch);
        model.name = Some(self.name.clone());
        Some(model)
    }

    /// Its training: Adam, four-byte floats, one GPU.
    pub fn training(&self) -> Training {
        let sequence = match &self.network {
            Network::Transformer(network) => Some(network.sequence),
            _ => None,
        };
        // The process first listed the layers of random networks with a forward pass over this many samples.
        let rehearsal = match self.network {
            Network::Mlp(_) | Network::Cnn(_) => Some(2),
            Network::Transformer(_) => Some(1),
            _ => None,
        };
        Training { batch: self.batch, sequence, input: self.network.input(), rehearsal, ..Training::default() }
    }
}

/// Source of an observation's memory value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Measured on a device.
    #[default]
    Measured,
    /// A dry run without a device, replayed through the allocator's model.
    DryRun,
    /// The static estimator.
    Static,
}

impl Label {
    /// Its name in the tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::DryRun => "dry-run",
            Self::Static => "static",
        }
    }

    /// The label with this name.
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
