//! `config.json` of Hugging Face: sizes of a transformer, by the key names of its family.

use serde_json::{Map, Value};

use super::error::{ParseError, Problem};
use super::graph::Graph;
use super::transformer::{self, Attention, Head, LONGEST_ASSUMED, Norm, Patches, Positions, TransformerConfig};
use super::wiring::usual_heads;
use crate::training::Training;

pub(super) fn read(text: &str, training: &Training) -> Result<Graph, ParseError> {
    let value: Value = serde_json::from_str(text).map_err(|error| Problem::Form(error.to_string()).at_line(error.line().max(1)))?;
    let Value::Object(object) = value else {
        return Err(Problem::expected(text, "a JSON object, as config.json is").at_line(1));
    };
    let mut graph = Graph::new(None);
    let config = config(&Keys(&object), training, &mut graph)?;
    transformer::build(&config, &mut graph)?;
    Ok(graph)
}

/// Access to a configuration's keys under alternative names.
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    fn number(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.0.get(*name)?.as_u64())
    }

    fn share(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.0.get(*name)?.as_f64()).filter(|share| (0.0..=1.0).contains(share))
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.get(*name)?.as_str())
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// A required size.
    fn size(&self, names: &[&str]) -> Result<u64, ParseError> {
        self.number(names).filter(|&size| size > 0).ok_or_else(|| {
            let wanted = names.first().copied().unwrap_or_default();
            Problem::Missing(format!("{wanted} is missing or not a whole number above 0: is this the config.json of a transformer?"))
                .at_line(1)
        })
    }
}

fn config(keys: &Keys<'_>, training: &Training, graph: &mut Graph) -> Result<TransformerConfig, ParseError> {
    let class = keys.0.get("architectures").and_then(|names| names.get(0)).and_then(Value::as_str).unwrap_or_default();
    let family = keys.text(&["model_type"]).or_else(|| TransformerConfig::family_of_class(class)).unwrap_or_default();
    let mut config = TransformerConfig::of_family(family);
    if !family.is_empty() && !config.is_of_known_family() {
        // Most new decoders follow Llama, and all that have this key normalise as it does.
        let similar = if keys.0.contains_key("rms_norm_eps") { "llama" } else { "gpt2" };
        config = TransformerConfig::of_family(similar);
        graph.note(&format!("model_type {family} is not known: operators are those of {similar}"));
    }
    config.name = if class.is_empty() { family.to_owned() } else { class.to_owned() };
    graph.name(&config.name);
    sizes(keys, &mut config)?;
    choices(keys, family, &mut config);
    let labels = keys.0.get("id2label").and_then(Value::as_object).map(|labels| labels.len() as u64);
    let labels = labels.or_else(|| keys.number(&["num_labels"])).unwrap_or(2);
    config.head = TransformerConfig::head_of_class(family, class, labels);
    config.pooler =
        family == "bert" && !matches!(config.head, Head::Masked | Head::Causal { .. }) && !class.ends_with("TokenClassification");
    if class.is_empty() {
        graph.note("architectures is missing: no head was assumed");
    }
    let most = keys.number(&["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"]);
    config.positions = match (config.positions, most) {
        // OPT keeps two rows for padding.
        (Positions::Learned(_), Some(rows)) => Positions::Learned(rows.saturating_add(if family == "opt" { 2 } else { 0 })),
        (Positions::Bias(_), _) => Positions::Bias(keys.number(&["relative_attention_num_buckets"]).unwrap_or(32)),
        (positions, _) => positions,
    };
    if config.patches.is_none() {
        // RoBERTa counts positions from two.
        let usable = if family.contains("roberta") { most.map(|rows| rows.saturating_sub(2)) } else { most };
        config.sequence = sequence(training, usable, graph);
    } else if let Some(&[_, height, width]) = training.input.as_deref() {
        config.patches = config.patches.map(|patches| Patches { image: [height, width], ..patches });
    }
    Ok(config)
}

/// Sequence length: as given, or the model's maximum within a limit.
pub(super) fn sequence(training: &Training, most: Option<u64>, graph: &mut Graph) -> u64 {
    if let Some(given) = training.sequence {
        return given;
    }
    let assumed = most.unwrap_or(512).clamp(1, LONGEST_ASSUMED);
    let why = if most == Some(assumed) { "from max_position_embeddings" } else { "as is usual" };
    graph.note(&format!("sequence length not given: {assumed} assumed {why}"));
    assumed
}

fn sizes(keys: &Keys<'_>, config: &mut TransformerConfig) -> Result<(), ParseError> {
    config.hidden = keys.size(&["hidden_size", "n_embd", "d_model", "dim"])?;
    config.layers = keys.size(&["num_hidden_layers", "n_layer", "n_layers", "num_layers"])?;
    config.heads =
        keys.number(&["num_attention_heads", "n_head", "n_heads", "num_heads"]).unwrap_or_else(|| usual_heads(config.hidden)).max(1);
    config.key_heads = keys.number(&["num_key_value_heads"]).unwrap_or(config.heads).max(1);
    config.head_width = keys.number(&["head_dim", "d_kv", "d_head"]).unwrap_or(config.hidden / config.heads);
    let inner = keys.number(&["intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff", "d_inner"]);
    config.intermediate = inner.unwrap_or_else(|| config.hidden.saturating_mul(4));
    if keys.flag("is_encoder_decoder") == Some(true) {
        config.decoder_layers = keys.number(&["num_decoder_layers", "decoder_layers"]).unwrap_or(config.layers);
    }
    if let Some(patches) = &mut config.patches {
        let side = keys.number(&["image_size"]).unwrap_or(224);
        *patches = Patches {
            image: [side, side],
            side: keys.number(&["patch_size"]).unwrap_or(16),
            channels: keys.number(&["num_channels"]).unwrap_or(3),
        };
    } else {
        config.vocabulary = keys.size(&["vocab_size"])?;
    }
    Ok(())
}

fn choices(keys: &Keys<'_>, family: &str, config: &mut TransformerConfig) {
    if config.token_types > 0 {
        config.token_types = keys.number(&["type_vocab_size"]).unwrap_or(config.token_types);
    }
    if let Some(name) = keys.text(&[
        "hidden_act",
        "hidden_activation",
        "activation_function",
        "activation",
        "ff_activation",
        "dense_act_fn",
        "feed_forward_proj",
    ]) {
        let plain = name.strip_prefix("gated-").unwrap_or(name);
        config.gated |= plain != name;
        activation(plain).clone_into(&mut config.activation);
    }
    config.gated |= keys.flag("is_gated_act") == Some(true);
    let dropout = ["hidden_dropout_prob", "resid_pdrop", "dropout", "dropout_rate", "hidden_dropout"];
    config.dropout = keys.share(&dropout).unwrap_or(config.dropout);
    let of_scores = keys.share(&["attention_probs_dropout_prob", "attn_pdrop", "attention_dropout"]);
    config.attention_dropout =
        of_scores.unwrap_or(if matches!(family, "t5" | "xlnet") { config.dropout } else { config.attention_dropout });
    config.tied = keys.flag("tie_word_embeddings").unwrap_or(config.tied);
    if keys.flag("attention_bias") == Some(true) && matches!(config.norm, Norm::RootMeanSquare(_)) {
        config.projection_bias = true;
        config.output_bias = true;
    }
    let capped = |name: &str| keys.0.get(name).is_some_and(Value::is_number);
    config.capped_words = capped("final_logit_softcapping");
    config.capped_scores = capped("attn_logit_softcapping");
    if config.capped_scores {
        config.attention = Attention::Eager;
    }
    config.parallel &= keys.flag("use_parallel_residual") != Some(false);
    if let Some("eager") = keys.text(&["_attn_implementation", "attn_implementation"])
        && config.attention == Attention::Fused
    {
        config.attention = Attention::Eager;
    }
}

/// The class for a name in Hugging Face's table of activations.
fn activation(name: &str) -> &str {
    match name {
        "gelu" | "gelu_python" => "GELUActivation",
        "gelu_new" => "NewGELUActivation",
        "gelu_fast" => "FastGELUActivation",
        "gelu_pytorch_tanh" => "PytorchGELUTanh",
        "relu" => "ReLU",
        "silu" | "swish" => "SiLU",
        "tanh" => "Tanh",
        other => other,
    }
}
