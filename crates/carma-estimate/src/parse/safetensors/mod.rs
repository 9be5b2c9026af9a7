//! The header of a safetensors file: names and shapes of weights identify a known architecture. Weights are never read.

mod images;
mod language;

use serde_json::Value;

use super::error::{ParseError, Problem};
use super::graph::{Graph, MOST_LAYERS};
use super::transformer;
use crate::training::Training;

/// Maximum bytes of a header, as the format defines it.
const LONGEST_HEADER: u64 = 100_000_000;

/// A weight's name and shape.
struct Weight {
    name: String,
    shape: Vec<u64>,
    /// Offset of its data: weights are stored in order of construction.
    offset: u64,
}

impl Weight {
    fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, &size| u64::saturating_mul(product, size))
    }
}

pub(super) fn read(bytes: &[u8], training: &Training) -> Result<Graph, ParseError> {
    let weights = weights(header(bytes)?)?;
    let mut graph = Graph::new(None);
    if let Some(config) = language::config(&weights, training, &mut graph) {
        transformer::build(&config, &mut graph)?;
    } else {
        images::wire(&weights, training, &mut graph)?;
    }
    let stored =
        weights.iter().filter(|weight| !is_statistic(&weight.name)).fold(0, |sum: u64, weight| sum.saturating_add(weight.elements()));
    let counted = graph.layers().iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.parameters));
    if stored != counted {
        graph.note(&format!("the file has {stored} parameters, the layers that were recognised have {counted}"));
    }
    graph.stated(Some(stored), None);
    Ok(graph)
}

/// Whether it is a running statistic or similar, which is stored with the weights but is not one.
fn is_statistic(name: &str) -> bool {
    ["running_mean", "running_var", "num_batches_tracked", "position_ids", "inv_freq", ".attn.bias", ".attn.masked_bias"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// The JSON after an eight-byte length, which is not trusted.
fn header(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(Problem::Missing("the header's length is missing: eight bytes".to_owned()).at_byte(bytes.len()));
    };
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER {
        return Err(Problem::Form(format!(
            "the header claims {length} bytes; at most {LONGEST_HEADER} are allowed: is this a safetensors file?"
        ))
        .at_byte(0));
    }
    rest.get(..length as usize).ok_or_else(|| {
        Problem::Missing(format!("the header claims {length} bytes and {} are there: give the whole header", rest.len()))
            .at_byte(bytes.len())
    })
}

fn weights(header: &[u8]) -> Result<Vec<Weight>, ParseError> {
    let value: Value = serde_json::from_slice(header).map_err(|error| Problem::Form(error.to_string()).at_byte(8 + error.column()))?;
    let Value::Object(object) = value else {
        return Err(Problem::expected("the header", "a JSON object of names and shapes").at_byte(8));
    };
    if object.len() > MOST_LAYERS {
        return Err(Problem::TooManyLayers(MOST_LAYERS).at_byte(8));
    }
    let mut weights = Vec::with_capacity(object.len());
    for (name, entry) in object.into_iter().filter(|(name, _)| name != "__metadata__") {
        let shape: Option<Vec<u64>> =
            entry.get("shape").and_then(Value::as_array).and_then(|sizes| sizes.iter().map(Value::as_u64).collect());
        let Some(shape) = shape else {
            return Err(Problem::expected(&name, "a weight with a shape, a list of whole numbers").at_byte(8));
        };
        let offset = entry.get("data_offsets").and_then(|offsets| offsets.get(0)).and_then(Value::as_u64).unwrap_or(0);
        weights.push(Weight { name, shape, offset });
    }
    weights.sort_by_key(|weight| weight.offset);
    if weights.is_empty() { Err(Problem::Empty.at_byte(8)) } else { Ok(weights) }
}
