//! The subject of an estimate: a description or recorded events, with the training and the hardware.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::estimators::{Estimator, Question};
use carma_estimate::gpu::Gpu;
use carma_estimate::parse::{Description, Hints};
use carma_estimate::stack::Stack;
use carma_estimate::trace::Recording;
use carma_estimate::training::Training;
use carma_estimate::utilisation::{self, Utilisation};
use clap::Args;

use super::description;
use super::training::{MachineArguments, TrainingArguments};

/// A description or recorded events, and flags that complete them.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    /// A description of the model: output of torchsummary, torchinfo or print(model), a Hugging Face config.json, ONNX, safetensors, a task
    /// file (.rad), or our TOML format
    #[arg(required_unless_present = "trace")]
    pub(crate) model: Option<PathBuf>,
    /// Events that `carma trace-memory -o` recorded; more accurate than a description
    #[arg(long)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) training: TrainingArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}

impl SubjectArguments {
    /// Reads the named files, and completes them by the flags.
    pub(crate) fn read(&self) -> Result<Subject> {
        let Self { model, trace, training, machine } = self;
        let described = model.as_deref().map(|file| description::read(file, training)).transpose()?;
        let recording = trace.as_deref().map(read_recording).transpose()?;
        let (description, training) = if let Some((description, training)) = described {
            (Some(description), training)
        } else {
            let batch = recording.as_ref().and_then(|recording| recording.header.batch);
            (None, training.training(&Hints { batch, ..Hints::default() }))
        };
        let hints = description.as_ref().map(|description| description.hints.clone()).unwrap_or_default();
        Ok(Subject {
            description,
            training,
            recording,
            stack: machine.stack(&hints)?,
            stack_on_any: machine.stack_on_any(&hints)?,
            allocator: machine.allocator()?,
            gpu: machine.gpu(),
            confidence: machine.confidence,
        })
    }

    /// The same job with another batch.
    pub(crate) fn with_batch(&self, batch: u64) -> Result<Subject> {
        let (model, trace, machine) = (self.model.clone(), self.trace.clone(), self.machine.clone());
        let mut training = self.training.clone();
        training.batch = Some(batch);
        Self { model, trace, training, machine }.read()
    }
}

/// All facts about a job.
pub(crate) struct Subject {
    pub(super) description: Option<Description>,
    pub(super) training: Training,
    recording: Option<Recording>,
    pub(crate) stack: Stack,
    stack_on_any: Stack,
    allocator: AllocatorSettings,
    gpu: Option<u64>,
    confidence: f64,
}

impl Subject {
    /// Notes for the user about the description and the recording.
    pub(super) fn notes(&self) -> impl Iterator<Item = &String> {
        let described = self.description.iter().flat_map(|description| &description.notes);
        described.chain(self.recording.iter().flat_map(|recording| &recording.header.notes))
    }

    /// The question to estimators.
    pub(crate) fn question(&self) -> Question<'_> {
        Question {
            model: self.description.as_ref().map(|description| &description.model),
            training: &self.training,
            recording: self.recording.as_ref(),
            stack: &self.stack,
            allocator: self.allocator,
            gpu: self.gpu,
            confidence: self.confidence,
        }
    }

    /// The software stack on another GPU.
    pub(super) fn stack_on(&self, gpu: &Gpu) -> Stack {
        self.stack_on_any.on(gpu)
    }

    /// Confidence of upper bounds.
    pub(super) const fn confidence(&self) -> f64 {
        self.confidence
    }

    /// The best estimator for the available data.
    pub(crate) fn best_estimator(&self) -> Estimator {
        if self.recording.is_some() { Estimator::DryRun } else { Estimator::Static }
    }

    /// Expected GPU utilisation, if the layers are known.
    pub(super) fn utilisation(&self) -> Option<Utilisation> {
        let model = &self.description.as_ref()?.model;
        (!model.layers.is_empty()).then(|| utilisation::estimate(model, &self.training))
    }
}

/// Reads the recording of a dry run.
pub(crate) fn read_recording(file: &Path) -> Result<Recording> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Recording::read(BufReader::new(open)).with_context(|| format!("{} cannot be used", file.display()))
}
