//! Transformers, recognised by the names of their weights.

use super::super::graph::Graph;
use super::super::transformer::{Classifier, Head, Patches, Positions, TransformerConfig};
use super::super::wiring::usual_heads;
use super::super::{huggingface, transformer::Attention};
use super::Weight;
use crate::training::Training;

/// For each family: name endings of the query, key and feed-forward weights. The layer number is before the ending.
const FAMILIES: [(&str, &str, &str, &str); 9] = [
    ("gpt2", ".attn.c_attn.weight", "", ".mlp.c_fc.weight"),
    ("gpt_neox", ".attention.query_key_value.weight", "", ".mlp.dense_h_to_4h.weight"),
    ("bert", ".attention.self.query.weight", ".attention.self.key.weight", ".intermediate.dense.weight"),
    ("distilbert", ".attention.q_lin.weight", ".attention.k_lin.weight", ".ffn.lin1.weight"),
    ("t5", ".SelfAttention.q.weight", ".SelfAttention.k.weight", ".wi.weight"),
    ("xlnet", ".rel_attn.q", ".rel_attn.k", ".ff.layer_1.weight"),
    ("opt", ".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".fc1.weight"),
    ("llama", ".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".mlp.gate_proj.weight"),
    ("vit", ".attention.q_proj.weight", ".attention.k_proj.weight", ".mlp.fc1.weight"),
];

/// The configuration of the transformer with these weights, if they belong to one.
pub(super) fn config(weights: &[Weight], training: &Training, graph: &mut Graph) -> Option<TransformerConfig> {
    let ending = |ending: &str| weights.iter().find(|weight| !ending.is_empty() && weight.name.ends_with(ending));
    let holds = |part: &str| weights.iter().any(|weight| weight.name.contains(part));
    let inner = |family: &str, inner: &'static str| if family == "t5" && ending(inner).is_none() { ".wi_0.weight" } else { inner };
    let (family, query, key, inner) = FAMILIES
        .into_iter()
        .map(|(family, query, key, wide)| (family, query, key, inner(family, wide)))
        .find(|(_, query, _, wide)| ending(query).is_some() && ending(wide).is_some())?;
    let named = if family == "bert" && holds("roberta.") { "roberta" } else { family };
    let mut config = TransformerConfig::of_family(named);
    let layers = |part: &str| {
        let numbers = weights.iter().filter(|weight| weight.name.contains(part)).filter_map(|weight| layer(&weight.name, query));
        numbers.max().map_or(0, |last| last.saturating_add(1))
    };
    let word = ["wte.weight", "embed_tokens.weight", "word_embeddings.weight", "embed_in.weight", "shared.weight", "word_embedding.weight"];
    if config.patches.is_some() {
        let projection = ending("projection.weight")?;
        let [hidden, channels, side, _] = *projection.shape.as_slice() else { return None };
        config.hidden = hidden;
        config.patches = Some(Patches { image: image(weights, training, side), side, channels });
    } else {
        let words = word.iter().find_map(|name| ending(name))?;
        let [vocabulary, hidden] = *words.shape.as_slice() else { return None };
        (config.vocabulary, config.hidden) = (vocabulary, hidden);
    }
    config.layers = if family == "t5" { layers("encoder.") } else { layers("") };
    config.decoder_layers = if family == "t5" { layers("decoder.") } else { 0 };
    let transposed = config.linear == "Conv1D";
    let outputs = |weight: &Weight| if transposed { weight.shape.get(1) } else { weight.shape.first() }.copied();
    config.intermediate = ending(inner).and_then(outputs)?;
    config.gated |= inner == ".wi_0.weight";
    heads(&mut config, ending(query)?, ending(key), ending("relative_attention_bias.weight"), graph);
    config.projection_bias = ending(&query.replace("weight", "bias")).is_some();
    let rows = ["wpe.weight", "position_embeddings.weight", "embed_positions.weight"]
        .iter()
        .find_map(|name| ending(name))
        .and_then(|table| table.shape.first().copied());
    if let Positions::Learned(_) = config.positions {
        config.positions = rows.map_or(Positions::None, Positions::Learned);
    }
    config.token_types = ending("token_type_embeddings.weight").and_then(|table| table.shape.first().copied()).unwrap_or(0);
    config.pooler = ending("pooler.dense.weight").is_some();
    head(&mut config, named, weights, graph);
    if config.patches.is_none() {
        let reserved = if matches!(named, "roberta" | "opt") { 2 } else { 0 };
        config.sequence = huggingface::sequence(training, rows.map(|rows| rows.saturating_sub(reserved)), graph);
    }
    graph.name(&config.name);
    graph.note(&format!("the weights' names are those of {named}: activation and dropout are taken to be its usual ones"));
    Some(config)
}

/// The layer number in a name: the first number, since parts of a layer may be numbered too.
fn layer(name: &str, ending: &str) -> Option<u64> {
    name.strip_suffix(ending)?.split('.').find_map(|part| part.parse().ok())
}

fn heads(config: &mut TransformerConfig, query: &Weight, key: Option<&Weight>, bias: Option<&Weight>, graph: &mut Graph) {
    if config.attention == Attention::Relative
        && let [_, heads, width] = *query.shape.as_slice()
    {
        (config.heads, config.key_heads, config.head_width) = (heads, heads, width);
        return;
    }
    let all = if config.joint { config.hidden } else { query.shape.first().copied().unwrap_or(config.hidden) };
    config.heads = bias.and_then(|table| table.shape.get(1).copied()).filter(|&heads| heads > 0 && all % heads == 0).unwrap_or_else(|| {
        graph.note("heads of attention are not stored: 64 features each were assumed");
        usual_heads(all)
    });
    config.head_width = all / config.heads.max(1);
    let keys = key.and_then(|key| key.shape.first().copied()).unwrap_or(all);
    config.key_heads = (keys / config.head_width.max(1)).max(1);
}

fn head(config: &mut TransformerConfig, family: &str, weights: &[Weight], graph: &mut Graph) {
    let ending = |ending: &str| weights.iter().find(|weight| weight.name.ends_with(ending));
    let last = [
        "lm_head.weight",
        "embed_out.weight",
        "predictions.decoder.weight",
        "lm_head.decoder.weight",
        "vocab_projector.weight",
        "lm_loss.weight",
    ];
    config.tied = !last.iter().any(|name| ending(name).is_some());
    let labels =
        ["classifier.weight", "score.weight", "classifier.out_proj.weight", "logits_proj.weight"].iter().find_map(|name| ending(name));
    let masked =
        ["predictions.transform.dense.weight", "lm_head.dense.weight", "vocab_transform.weight"].iter().any(|name| ending(name).is_some());
    config.head = if masked {
        Head::Masked
    } else if let Some(labels) = labels.and_then(|weight| weight.shape.first().copied()) {
        let style = match family {
            "bert" if config.pooler => Classifier::Pooled,
            "roberta" | "distilbert" | "xlnet" => Classifier::Dense,
            "gpt2" | "opt" | "llama" | "gpt_neox" => Classifier::EveryToken,
            _ => Classifier::Plain,
        };
        Head::Classifier { labels, style }
    } else if matches!(family, "gpt2" | "opt" | "llama" | "gpt_neox" | "t5") || ending("lm_loss.bias").is_some() {
        if config.tied {
            graph.note("no weights of a last layer are stored: it is taken to share those of the embedding");
        }
        Head::Causal { bias: family == "xlnet" }
    } else {
        Head::None
    };
}

/// Size of the images: as given, or from the number of positions.
fn image(weights: &[Weight], training: &Training, side: u64) -> [u64; 2] {
    if let Some(&[_, height, width]) = training.input.as_deref() {
        return [height, width];
    }
    let positions =
        weights.iter().find(|weight| weight.name.ends_with("position_embeddings")).and_then(|table| table.shape.get(1).copied());
    let across = positions.map_or(14, |positions| positions.saturating_sub(1).isqrt());
    [across.saturating_mul(side), across.saturating_mul(side)]
}
