//! Sizes of a Hugging Face transformer, inferred from its printed modules.

use super::super::graph::Graph;
use super::super::role::Role;
use super::super::transformer::{Attention, Head, Norm, Patches, Positions, TransformerConfig};
use super::super::tree::{Module, children};
use super::super::wiring::usual_heads;
use crate::model::{LayerKind, Normalisation};
use crate::training::Training;

/// The configuration of the transformer whose root is the first module, if its family is known.
pub(in super::super) fn config(modules: &[Module<'_>], training: &Training, graph: &mut Graph) -> Option<TransformerConfig> {
    let root = modules.first()?;
    let family = TransformerConfig::family_of_class(root.class)?;
    let mut config = TransformerConfig::of_family(family);
    root.class.clone_into(&mut config.name);
    let by_name = |names: &[&str]| modules.iter().find(|module| names.contains(&&*module.name));
    let stacks = stacks(modules);
    let layer = stacks.first().and_then(|stack| children(modules, *stack).next())?;
    let layer_end = modules.get(layer)?.end;
    let inside = modules.get(layer..layer_end)?;
    config.layers = children(modules, *stacks.first()?).count() as u64;
    config.decoder_layers = if stacks.len() > 1 { children(modules, *stacks.get(1)?).count() as u64 } else { 0 };
    embeddings(modules, &mut config);
    if let Some(projection) = by_name(&["projection"]).filter(|_| config.patches.is_some()) {
        config.hidden = projection.attributes.outputs?;
        config.patches = Some(Patches {
            image: match training.input.as_deref() {
                Some(&[_, height, width]) => [height, width],
                _ => [224, 224],
            },
            side: projection.attributes.kernel?[0],
            channels: projection.attributes.inputs?,
        });
    }
    block(inside, &mut config, graph)?;
    dropout(modules, inside, &mut config);
    attention(inside, family, &mut config, graph);
    let labels = modules.iter().rev().find(|module| module.kind == LayerKind::Linear).and_then(|module| module.attributes.outputs);
    config.head = TransformerConfig::head_of_class(family, root.class, labels.unwrap_or(2));
    config.pooler = by_name(&["pooler"]).is_some();
    if matches!(config.head, Head::Masked | Head::Causal { .. }) && config.tied {
        graph.note(
            "the last layer is taken to share the embedding's weights, as is usual in this family; its printed parameters count once",
        );
    }
    if config.patches.is_none() {
        let rows = if let Positions::Learned(rows) = config.positions { Some(rows) } else { None };
        // RoBERTa and OPT keep two rows for padding.
        let usable =
            if matches!(family, "roberta" | "xlm-roberta" | "camembert" | "opt") { rows.map(|rows| rows.saturating_sub(2)) } else { rows };
        config.sequence = super::super::huggingface::sequence(training, usable, graph);
    }
    Some(config)
}

/// Lists of at least one block, in order: the encoder's, then the decoder's.
fn stacks(modules: &[Module<'_>]) -> Vec<usize> {
    let named = |module: &Module<'_>| matches!(&*module.name, "layer" | "layers" | "h" | "block" | "blocks");
    let mut stacks: Vec<usize> = Vec::new();
    let mut end = 0;
    for (place, module) in modules.iter().enumerate() {
        // T5 has lists of the same name within its blocks.
        if place >= end && module.class == "ModuleList" && named(module) && module.end > place + 1 {
            stacks.push(place);
            end = module.end;
        }
    }
    stacks.truncate(2);
    stacks
}

fn embeddings(modules: &[Module<'_>], config: &mut TransformerConfig) {
    let mut positions = None;
    for module in modules.iter().filter(|module| module.kind == LayerKind::Embedding) {
        match &*module.name {
            "position_embeddings" | "wpe" | "embed_positions" => positions = module.attributes.inputs,
            "token_type_embeddings" => config.token_types = module.attributes.inputs.unwrap_or(0),
            "relative_attention_bias" => config.positions = Positions::Bias(module.attributes.inputs.unwrap_or(32)),
            _ if config.vocabulary == 0 => {
                config.vocabulary = module.attributes.inputs.unwrap_or(0);
                config.hidden = module.attributes.outputs.unwrap_or(0);
            }
            _ => {}
        }
    }
    if let Positions::Learned(_) = config.positions {
        config.positions = positions.map_or(Positions::None, Positions::Learned);
    }
}

/// Widths, biases, activation and normalisation of a block.
fn block(inside: &[Module<'_>], config: &mut TransformerConfig, graph: &mut Graph) -> Option<()> {
    let hidden = config.hidden;
    let linear = |names: &[&str]| inside.iter().find(|module| module.kind == LayerKind::Linear && names.contains(&&*module.name));
    let query = linear(&["query", "q_proj", "q_lin", "q", "c_attn", "query_key_value"]);
    let key = linear(&["key", "k_proj", "k_lin", "k"]);
    let output = linear(&["o_proj", "out_proj", "out_lin", "o", "c_proj"]);
    config.joint = query.is_some_and(|query| matches!(&*query.name, "c_attn" | "query_key_value"));
    let first = linear(&["gate_proj", "wi_0", "wi", "c_fc", "fc1", "lin1", "layer_1", "dense_h_to_4h"]).or_else(|| {
        let widens = |module: &&Module<'_>| module.kind == LayerKind::Linear && width(module, hidden).is_some_and(|width| width > hidden);
        inside.iter().find(|module| widens(module) && !matches!(&*module.name, "c_attn" | "query_key_value"))
    });
    config.intermediate = width(first?, hidden)?;
    config.gated = linear(&["gate_proj", "wi_0"]).is_some();
    let biased = |module: Option<&Module<'_>>, usual: bool| module.and_then(|module| module.attributes.bias).unwrap_or(usual);
    config.projection_bias = biased(query, config.projection_bias);
    config.output_bias = biased(output, config.output_bias);
    config.feed_forward_bias = biased(first, config.feed_forward_bias);
    let all = query.and_then(|query| width(query, hidden)).unwrap_or(hidden);
    let all = if config.joint { all / 3 } else { all };
    config.heads = usual_heads(all);
    config.head_width = all / config.heads.max(1);
    let keys = key.and_then(|key| width(key, hidden)).unwrap_or(all);
    config.key_heads = (keys / config.head_width.max(1)).max(1);
    graph.note(&format!("heads of attention are not printed: {} of {} features each were assumed", config.heads, config.head_width));
    if let Some(activation) = inside.iter().find(|module| matches!(module.kind, LayerKind::Activation(_))) {
        activation.class.clone_into(&mut config.activation);
    }
    let norm = inside.iter().find_map(|module| if let LayerKind::Normalisation(norm) = module.kind { Some(norm) } else { None });
    if norm == Some(Normalisation::Layer) {
        config.norm = Norm::Layer;
    }
    Some(())
}

/// Output features of a linear layer; if not printed, inferred from its parameters.
fn width(module: &Module<'_>, hidden: u64) -> Option<u64> {
    module.attributes.outputs.or_else(|| {
        let parameters = module.parameters.filter(|&parameters| parameters > 0)?;
        parameters.checked_div(hidden.checked_add(1)?)
    })
}

fn dropout(modules: &[Module<'_>], inside: &[Module<'_>], config: &mut TransformerConfig) {
    let share = |modules: &[Module<'_>], of_scores: bool| {
        let mut end = 0;
        let mut found = None;
        for (place, module) in modules.iter().enumerate() {
            if module.role == Role::Attention && module.end > place + 1 {
                end = module.end;
            }
            let printed = matches!(module.kind, LayerKind::Dropout { .. }).then_some(module.attributes.probability).flatten();
            if (place < end) == of_scores && found.is_none() {
                found = printed;
            }
        }
        found
    };
    // The position of the block does not matter: the first printed one decides.
    config.dropout = share(modules, false).unwrap_or(config.dropout);
    config.attention_dropout = share(inside, true).unwrap_or(config.attention_dropout);
}

fn attention(inside: &[Module<'_>], family: &str, config: &mut TransformerConfig, graph: &mut Graph) {
    let class = inside.iter().filter(|module| module.role == Role::Attention).map(|module| module.class);
    let fused = class.clone().any(|class| class.contains("Sdpa") || class.contains("Flash"));
    let eager = class.clone().any(|class| class.contains("Eager"));
    match config.attention {
        Attention::Relative | Attention::Eager => {}
        Attention::Fused if eager => config.attention = Attention::Eager,
        Attention::Fused if fused => {}
        Attention::Fused => graph.note("how attention is computed is not printed: the fused kernel of current versions was assumed"),
    }
    if family == "xlnet" {
        config.attention_dropout = config.dropout;
    }
}
