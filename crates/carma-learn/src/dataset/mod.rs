//! Data sets for training: random networks, written in the format of the published tables, and cleaned.

mod clean;
mod draw;
mod write;

pub use clean::{Cleaned, Keep, Reason, clean};
pub use draw::draw;
pub use write::write;

use crate::data::{Label, Network, Observation};
use crate::evaluate::LARGEST_MIB;
use crate::on_all_cores;
use carma_estimate::Family;
use carma_estimate::model::Model;
use carma_estimate::training::Training;

/// Draws `rows` networks of a family and labels each with its memory in MiB from `memory`: a measurement, a dry run or the static estimator, as
/// `label` says. More than 40 GB counts as crashed. The same seed gives the same rows.
pub fn generate(
    family: Family,
    rows: usize,
    seed: u64,
    label: Label,
    memory: &(dyn Fn(&Model, &Training) -> f64 + Sync),
) -> Vec<Observation> {
    let observation = |(network, batch): &(Network, u64)| {
        let mut observation = Observation {
            name: file_name(network, *batch),
            batch: *batch,
            measured: None,
            crashed: false,
            network: network.clone(),
            family: Some(family),
            counters: None,
            stated_parameters: None,
            label,
            published: Vec::new(),
        };
        if let Some(model) = observation.model() {
            let needed = memory(&model, &observation.training());
            observation.stated_parameters = Some(model.parameters());
            observation.crashed = needed > LARGEST_MIB;
            observation.measured = Some(needed);
        }
        observation
    };
    on_all_cores(&draw(family, rows, seed), observation)
}

/// The file name of a random network; empty for named models.
fn file_name(network: &Network, batch: u64) -> String {
    match network {
        Network::Mlp(network) => network.file_name(batch),
        Network::Cnn(network) => network.file_name(batch),
        Network::Transformer(network) => network.file_name(batch),
        Network::FullyConnected(_) | Network::Timm { .. } | Network::Real { .. } | Network::Xmem { .. } => String::new(),
    }
}
