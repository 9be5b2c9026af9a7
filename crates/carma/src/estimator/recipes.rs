//! Recipes of measured rows: how the Python package makes the network that a row is about.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use carma_estimate::Family;
use carma_estimate::estimators::Estimator;
use carma_estimate::model::Model;
use carma_estimate::trace::Recording;
use carma_estimate::training::{Optimizer, Parallel, Training};
use carma_learn::data::{Network, Observation};
use carma_learn::evaluate::LARGEST_MIB;
use serde_json::{Value, json};

use super::evaluate::MIB;
use super::machine::Machine;
use super::python_worker::{Kind, PythonWorker};
use crate::estimate::read_recording;

/// The recipe of a row; unset if the package has none.
pub(super) fn recipe(row: &Observation) -> Option<Value> {
    Some(match &row.network {
        Network::Timm { model } => json!({ "kind": "timm", "model": model, "batch": row.batch }),
        Network::Real { task, gpus, .. } if batch_is_doubtful(task) => json!({ "kind": "real", "task": task, "gpus": gpus }),
        Network::Real { task, gpus, .. } => json!({ "kind": "real", "task": task, "batch": row.batch, "gpus": gpus }),
        Network::Xmem { model, optimizer, .. } => {
            json!({ "kind": "xmem", "model": model, "batch": row.batch, "optimizer": optimizer.to_lowercase() })
        }
        Network::Cnn(_) => json!({ "kind": "cnn", "file_name": row.name, "parameters": row.stated_parameters }),
        Network::Transformer(_) => json!({ "kind": "transformer", "file_name": row.name }),
        Network::Mlp(_) => json!({ "kind": "mlp", "file_name": row.name, "layers": listed(&row.model()?) }),
        Network::FullyConnected(_) => return None,
    })
}

/// Tasks with a doubtful batch size in the published table: the recipe's own fits.
fn batch_is_doubtful(task: &str) -> bool {
    task == "UNet" || task.starts_with("xlnet")
}

/// Layers in the terms of the published tables: type, activations, parameters.
fn listed(model: &Model) -> Vec<Value> {
    let word = |class: &str| match class {
        "Linear" => "linear".to_owned(),
        "BatchNorm1d" => "batch_normalization".to_owned(),
        "Dropout" => "dropout".to_owned(),
        other => other.to_owned(),
    };
    model.layers.iter().map(|layer| json!([word(&layer.class), layer.output.per_sample(), layer.parameters])).collect()
}

fn needed(row: &Observation) -> Result<Value> {
    recipe(row).context("there is no PyTorch recipe for this kind of network")
}

fn name(row: &Observation) -> String {
    format!("{} {}", row.name, row.batch)
}

/// Allocation events of a row's network.
pub(super) fn recording(worker: &mut PythonWorker, row: &Observation) -> Result<Recording> {
    read_recording(&worker.make(Kind::Trace, &name(row), &needed(row)?)?)
}

/// Layers of a row's network, from its table, from a printed summary beside it, or described by the package.
pub(super) fn model(worker: &mut PythonWorker, row: &Observation, summaries: &Path, training: &Training) -> Result<Model> {
    if let Some(model) = row.model() {
        return Ok(model);
    }
    let printed = match &row.network {
        Network::Real { task, .. } => summary(task, row.batch).map(|file| summaries.join(file)).filter(|file| file.exists()),
        _ => None,
    };
    let file = match printed {
        Some(file) => file,
        None => worker.make(Kind::Describe, &name(row), &needed(row)?)?,
    };
    let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let description = carma_estimate::parse::read(&bytes, None, training).with_context(|| format!("{} cannot be used", file.display()))?;
    Ok(description.model)
}

/// The training of a row's network. Values missing in its set were chosen once per family, to fit all its rows.
pub(super) fn training(row: &Observation) -> Training {
    let plain = row.training();
    match &row.network {
        Network::Timm { .. } => Training { optimizer: Optimizer::Momentum, weight_decay: true, ..plain },
        Network::Real { task, gpus, .. } => {
            let language = ["BERT", "gpt2", "xlnet"].iter().any(|family| task.starts_with(family));
            let optimizer = match task.as_str() {
                _ if language => Optimizer::AdamW,
                _ if task.contains("cifar100") || task == "UNet" || task == "mnist_train" => Optimizer::Adam,
                "dlrm" => Optimizer::Sgd,
                _ => Optimizer::Momentum,
            };
            let parallel = if *gpus > 1 { Parallel::DataParallel { gpus: *gpus } } else { Parallel::Single };
            let batch = if batch_is_doubtful(task) { 16 } else { row.batch };
            Training { batch, optimizer, parallel, sequence: language.then_some(512), ..plain }
        }
        Network::Xmem { optimizer, .. } => {
            let optimizer = match optimizer.as_str() {
                "SGD" => Optimizer::Sgd,
                "AdamW" => Optimizer::AdamW,
                "RMSprop" => Optimizer::RmsProp,
                "Adagrad" => Optimizer::Adagrad,
                "Adafactor" => Optimizer::Adafactor,
                _ => Optimizer::Adam,
            };
            let language = row.family == Some(Family::Transformer);
            Training { optimizer, sequence: language.then_some(128), input: (!language).then(|| vec![3, 86, 86]), ..plain }
        }
        _ => plain,
    }
}

/// The printed summary of a task, by the names that the published folder uses.
fn summary(task: &str, batch: u64) -> Option<String> {
    let stem = match task.trim_end_matches(['2', '3']) {
        "Inception" => format!("Inception_{batch}"),
        "Xception" => format!("Xception_{batch}"),
        "efficientNet" => format!("efficientnet_{batch}"),
        "mobilenet" => format!("mobilenet_{batch}"),
        "resnet" => format!("resnet50_{batch}"),
        "vgg" => format!("vgg_{batch}"),
        "mnist_train" => "mnist_cnn_64".to_owned(),
        // The published summary of this one is a copy of another model's.
        other if other.starts_with("mobilenet_cifar100") => return None,
        other => other.split("_20e").next()?.trim_end_matches('_').to_owned(),
    };
    Some(format!("{stem}.model"))
}

/// Memory in MiB by dry run, and whether it would run out on the GPU of the published sets.
pub(super) fn dry_run(worker: &mut PythonWorker, row: &Observation) -> Result<(f64, bool)> {
    let recording = recording(worker, row)?;
    let (training, machine) = (training(row), Machine::of(row));
    let question = super::evaluate::question(None, &training, Some(&recording), &machine);
    let answer = Estimator::DryRun.estimate(&question)?;
    let memory = answer.bytes as f64 / MIB;
    Ok((memory, answer.out_of_memory || memory > LARGEST_MIB))
}

/// Memory in MiB as a real GPU shows it.
pub(super) fn measured(worker: &mut PythonWorker, row: &Observation) -> Result<(f64, bool)> {
    let file = worker.make(Kind::Measure, &name(row), &needed(row)?)?;
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let answer: Value = serde_json::from_str(&text)?;
    let memory = answer["memory_mib"].as_f64().context("the measurement has no memory")?;
    Ok((memory, answer["crashed"] == true))
}
