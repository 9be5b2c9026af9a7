//! Writes observations of random networks in the published table format, with an additional column for the source of the memory.

use std::io::Write;

use crate::data::{Counters, Network, Observation};
use carma_estimate::Family;
use carma_estimate::learned::ActivationFunction;
use carma_estimate::model::{LayerKind, Model, Normalisation};

/// Writes observations of random networks of one family and skips others. Returns the number of written rows.
pub fn write(observations: &[Observation], family: Family, table: impl Write) -> Result<usize, csv::Error> {
    let mut writer = csv::Writer::from_writer(table);
    let mut written = 0;
    for observation in observations.iter().filter(|observation| observation.family == Some(family)) {
        let Some(model) = observation.model() else { continue };
        let Some(columns) = columns(observation, &model) else { continue };
        if written == 0 {
            writer.write_record(columns.iter().map(|(name, _)| *name))?;
        }
        writer.write_record(columns.iter().map(|(_, value)| value.as_str()))?;
        written += 1;
    }
    writer.flush()?;
    Ok(written)
}

type Columns = Vec<(&'static str, String)>;

fn columns(observation: &Observation, model: &Model) -> Option<Columns> {
    let listed = Listed::of(model);
    let memory = ("Max GPU Memory (MiB)", observation.measured.map(|memory| memory.to_string()).unwrap_or_default());
    let end = [
        ("Status", if observation.crashed { "OOM_CRASH" } else { "SUCCESSFUL" }.to_owned()),
        ("Label", observation.label.word().to_owned()),
    ];
    let batch = ("Batch Size", observation.batch.to_string());
    let parameters = |hidden: u64| ("Total Parameters", model.parameters().saturating_sub(hidden).to_string());
    let activations = ("Total Activations", listed.activations.to_string());
    let mut columns: Columns = vec![("Filename", observation.name.clone())];
    match &observation.network {
        Network::Mlp(network) => {
            columns.push(("Depth", listed.linear.to_string()));
            columns.extend(listed.layers(network.activation, listed.activations));
            // The tables do not count the slope of a PReLU.
            columns.extend([parameters(listed.slopes), batch]);
            columns.extend([("Batch Normalization Layers", listed.norms.to_string()), ("Dropout Layers", listed.dropouts.to_string())]);
            columns.push(memory);
            columns.extend(counters(observation.counters));
        }
        Network::Cnn(network) => {
            columns.push(("Depth", listed.convolutions.to_string()));
            columns.extend(listed.layers(network.activation, listed.activations));
            columns.extend([parameters(listed.slopes), batch, memory]);
            columns.extend(counters(observation.counters));
            columns.extend([("Conv2d Count", listed.convolutions.to_string()), ("BatchNorm2d Count", listed.norms.to_string())]);
            columns.extend([("Dropout Count", listed.dropouts.to_string()), ("AdaptiveAvgPool2d Count", "1".to_owned())]);
            columns.push(("Linear Count", listed.linear.to_string()));
        }
        Network::Transformer(network) => {
            columns.extend([batch, ("Seq Length", network.sequence.to_string()), ("Embedding Size", network.embedding.to_string())]);
            columns.extend([("Num Layers", network.layers.to_string()), ("Num Heads", network.heads.to_string())]);
            columns.extend([
                ("Depth", (8 * network.layers + 2).to_string()),
                activations,
                parameters(network.unlisted_parameters()),
                memory,
            ]);
        }
        Network::FullyConnected(_) | Network::Timm { .. } | Network::Real { .. } | Network::Xmem { .. } => return None,
    }
    columns.extend(end);
    Some(columns)
}

fn counters(counters: Option<Counters>) -> [(&'static str, String); 5] {
    // Not recorded.
    let none = Counters { utilisation: -0.01, engine: -1.0, smact: -1.0, smocc: -1.0, fp32: -1.0 };
    let Counters { utilisation, engine, smact, smocc, fp32 } = counters.unwrap_or(none);
    [("Avg GPUTL", 100.0 * utilisation), ("Avg GRACT", engine), ("Avg SMACT", smact), ("Avg SMOCC", smocc), ("Avg FP32A", fp32)]
        .map(|(name, mean)| (name, mean.to_string()))
}

/// What the published tables list for a network: modules, without sums and views.
#[derive(Default)]
struct Listed {
    text: String,
    activations: u64,
    linear: usize,
    convolutions: usize,
    norms: usize,
    dropouts: usize,
    slopes: u64,
}

impl Listed {
    fn of(model: &Model) -> Self {
        let mut listed = Self::default();
        let mut layers = Vec::new();
        for layer in &model.layers {
            let name = match &layer.kind {
                LayerKind::Linear => "linear",
                LayerKind::Convolution { .. } => "conv2d",
                LayerKind::Normalisation(Normalisation::Batch) if layer.class == "BatchNorm2d" => "batchnorm2d",
                LayerKind::Normalisation(Normalisation::Batch) => "batch_normalization",
                LayerKind::Dropout { .. } => "dropout",
                LayerKind::AveragePool if layer.class == "AdaptiveAvgPool2d" => "adaptive_avg_pool2d",
                LayerKind::Activation(_) | LayerKind::Softmax => layer.class.as_str(),
                _ if layer.class == ActivationFunction::Identity.class() => layer.class.as_str(),
                _ => continue,
            };
            let (activations, mut parameters) = (layer.output.per_sample(), layer.parameters);
            match name {
                "linear" => listed.linear += 1,
                "conv2d" => listed.convolutions += 1,
                "batchnorm2d" | "batch_normalization" => listed.norms += 1,
                "dropout" => listed.dropouts += 1,
                "PReLU" => (listed.slopes, parameters) = (listed.slopes + parameters, 0),
                _ => {}
            }
            listed.activations += activations;
            layers.push(format!("('{name}', {activations}, {parameters})"));
        }
        listed.text = format!("[{}]", layers.join(", "));
        listed
    }

    fn layers(&self, activation: ActivationFunction, activations: u64) -> [(&'static str, String); 3] {
        [
            ("Activations-Params", self.text.clone()),
            ("Activation Function", activation.class().to_owned()),
            ("Total Activations", activations.to_string()),
        ]
    }
}
