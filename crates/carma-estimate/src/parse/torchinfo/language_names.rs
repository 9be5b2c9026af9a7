//! Names and sizes for the modules of a transformer; the table shows only classes and shapes.

use super::super::role::Role;
use super::super::transformer::TransformerConfig;
use super::super::tree::Module;
use crate::model::{LayerKind, Shape};

/// Names the modules of a known transformer as in a printed model; false if it is not one, or its blocks are hidden.
pub(super) fn assign(modules: &mut [Module<'_>]) -> bool {
    let Some(family) = modules.first().and_then(|root| TransformerConfig::family_of_class(root.class)) else { return false };
    let hidden =
        modules.iter().find(|module| module.kind == LayerKind::Embedding).and_then(|words| words.output.as_ref()).map(Shape::features);
    let Some(hidden) = hidden.filter(|&hidden| hidden > 0 && family != "vit") else { return false };
    let (mut attention_end, mut linears, mut tables) = (0, 0, 0);
    let mut attends = false;
    for place in 0..modules.len() {
        let Some(module) = modules.get_mut(place) else { break };
        if module.role == Role::Attention && module.end > place + 1 && place >= attention_end {
            (attention_end, linears, attends) = (module.end, 0, true);
        }
        let features = module.output.as_ref().map_or(0, Shape::features);
        let parameters = module.parameters.unwrap_or(0);
        let name = match module.kind {
            LayerKind::Embedding => {
                module.attributes.inputs = parameters.checked_div(features);
                module.attributes.outputs = Some(features);
                tables += 1;
                match (tables, module.attributes.inputs) {
                    (1, _) => "word_embeddings",
                    (_, Some(1 | 2)) => "token_type_embeddings",
                    _ if features != hidden => "relative_attention_bias",
                    _ => "position_embeddings",
                }
            }
            LayerKind::Linear => {
                module.attributes.outputs = Some(features);
                // Widths are even: an odd number of parameters per output includes a bias.
                module.attributes.bias = parameters.checked_div(features).map(|each| each % 2 == 1);
                linears += 1;
                match linears {
                    _ if place >= attention_end => "linear",
                    1 if features == hidden.saturating_mul(3) => "c_attn",
                    1 => "query",
                    2 if features > hidden => "linear",
                    2 => "key",
                    3 => "value",
                    _ => "o_proj",
                }
            }
            _ if module.class == "ModuleList" => "layer",
            _ if module.class.ends_with("Pooler") => "pooler",
            _ => continue,
        };
        module.name = name.into();
    }
    attends
}

/// Sequence length, from the word embedding.
pub(super) fn sequence(modules: &[Module<'_>]) -> Option<u64> {
    let words = modules.iter().find(|module| module.kind == LayerKind::Embedding)?.output.as_ref()?;
    if let [tokens, _] = *words.dimensions() { Some(tokens) } else { None }
}
