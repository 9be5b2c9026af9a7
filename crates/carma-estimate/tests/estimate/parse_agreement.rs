//! Different descriptions of one model lead to the same layers.

use carma_estimate::model::{LayerKind, Model};

use crate::parse_lab::{computed, count, model};

/// What must not depend on the format.
fn facts(model: &Model) -> [u64; 5] {
    let kinds = |kind: fn(&LayerKind) -> bool| count(model, kind) as u64;
    [
        model.parameters(),
        computed(model),
        kinds(|kind| matches!(kind, LayerKind::Convolution { .. })),
        kinds(|kind| *kind == LayerKind::Add),
        kinds(|kind| *kind == LayerKind::Concatenate),
    ]
}

fn agree(name: &str, files: &[&str]) {
    // Tables do not show that a dropout overwrites.
    let in_place =
        |model: &Model| model.layers.iter().filter(|layer| layer.in_place && !matches!(layer.kind, LayerKind::Dropout { .. })).count();
    let expected = model(name, files[0]);
    for file in &files[1..] {
        let other = model(name, file);
        assert_eq!(facts(&other), facts(&expected), "{name}: {file} against {}", files[0]);
        // A graph does not say whether a sum overwrites.
        if !file.ends_with("onnx") {
            assert_eq!(in_place(&other), in_place(&expected), "{name}: {file} against {}", files[0]);
        }
    }
}

#[test]
fn tables_trees_printed_models_and_graphs_agree() {
    agree("resnet18", &["torchsummary.txt", "torchinfo.txt", "torchinfo_shallow.txt", "repr.txt", "graph.onnx"]);
    agree("resnet50", &["torchsummary.txt", "torchinfo_shallow.txt", "repr.txt"]);
    agree("resnext50", &["torchsummary.txt", "repr.txt"]);
    agree("mobilenet_v2", &["torchsummary.txt", "torchinfo.txt", "torchinfo_shallow.txt", "repr.txt", "graph.onnx"]);
    agree("inception_v3", &["torchsummary.txt", "torchinfo.txt", "repr.txt"]);
    agree("efficientnet_b0", &["torchsummary.txt", "repr.txt"]);
    agree("efficientnet_b0_timm", &["torchsummary.txt", "torchinfo.txt", "repr.txt"]);
    agree("squeezenet", &["torchsummary.txt", "torchinfo.txt", "repr.txt", "graph.onnx"]);
    agree("densenet121", &["torchinfo.txt", "repr.txt"]);
}

#[test]
fn configurations_printed_models_and_weights_of_transformers_agree() {
    for name in
        ["bert", "bert_classifier", "roberta", "distilbert", "gpt2", "opt", "llama", "qwen2", "gpt_neox", "t5", "xlnet", "xlnet_lm", "vit"]
    {
        agree(name, &["config.json", "repr.txt", "weights.safetensors"]);
    }
    agree("bert", &["config.json", "torchinfo.txt"]);
    agree("gpt2", &["config.json", "torchinfo.txt"]);
}
