//! Parameters of what is parsed against those of the real models.

use std::collections::BTreeMap;

use crate::parse_lab::{all, check, description, fixtures};

#[test]
fn parameters_of_every_fixture_are_those_of_the_real_model() {
    let totals: BTreeMap<String, u64> = serde_json::from_slice(&std::fs::read(fixtures().join("totals.json")).unwrap()).unwrap();
    for (model, path) in all() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let parsed = description(&model, file);
        check(&parsed.model, &format!("{model}/{file}"));
        assert_eq!(parsed.model.parameters(), totals[&model], "{model}/{file}: {:?}", parsed.notes);
    }
}

#[test]
fn every_convolution_has_the_filter_and_groups_that_its_parameters_need() {
    for (model, path) in all() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let parsed = description(&model, file).model;
        for layer in &parsed.layers {
            let carma_estimate::model::LayerKind::Convolution { kernel, groups, .. } = layer.kind else { continue };
            let input = match layer.inputs[0] {
                carma_estimate::model::Source::Input(input) => &parsed.inputs[input].shape,
                carma_estimate::model::Source::Layer(layer) => &parsed.layers[layer].output,
            };
            let (inputs, outputs) = (input.dimensions()[0], layer.output.dimensions()[0]);
            let weight = inputs / groups * outputs * kernel[0] * kernel[1];
            assert!(layer.parameters == weight || layer.parameters == weight + outputs, "{model}/{file}: {} {:?}", layer.name, layer.kind);
        }
    }
}

/// Sizes of a published config.json, with what its authors state as parameters.
fn parameters_of(config: &str) -> (u64, Vec<String>) {
    let parsed =
        carma_estimate::parse::read(config.as_bytes(), Some("config.json"), &carma_estimate::training::Training::default()).unwrap();
    (parsed.model.parameters(), parsed.notes)
}

#[test]
fn newer_decoders_have_their_own_operators() {
    let gemma = r#"{"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000,
        "hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}"#;
    assert_eq!(parameters_of(gemma).0, 2_614_341_888);
    let qwen = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
        "hidden_act": "silu", "tie_word_embeddings": true}"#;
    assert_eq!(parameters_of(qwen).0, 596_049_920);
}

#[test]
fn an_unknown_family_is_named_and_read_as_a_similar_one() {
    let config = |family: &str| {
        format!(
            r#"{{"architectures": ["NewForCausalLM"], "model_type": "{family}", "hidden_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000, "rms_norm_eps": 1e-6, "hidden_act": "silu"}}"#
        )
    };
    let (parameters, notes) = parameters_of(&config("newest"));
    assert_eq!(parameters, parameters_of(&config("llama")).0);
    assert!(notes.iter().any(|note| note == "model_type newest is not known: operators are those of llama"), "{notes:?}");
}
