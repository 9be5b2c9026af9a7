//! What layers say about themselves beyond their shape.

use carma_estimate::model::{Activation, ElementType, LayerKind, Reshaping};
use carma_estimate::parse::{self, Format};
use carma_estimate::training::Training;

use crate::parse_lab::{bytes, count, description, model, text};

#[test]
fn formats_are_recognised_by_their_content() {
    let expected = [
        ("resnet18", "torchsummary.txt", Format::TorchSummary),
        ("resnet18", "torchinfo.txt", Format::TorchInfo),
        ("resnet18", "repr.txt", Format::ModuleRepr),
        ("resnet18", "graph.onnx", Format::Onnx),
        ("resnet18", "weights.safetensors", Format::SafeTensors),
        ("bert", "config.json", Format::HuggingFaceConfig),
    ];
    for (model, file, format) in expected {
        assert_eq!(description(model, file).format, format, "{model}/{file}");
        let misnamed = parse::read(&bytes(model, file), Some("other.model"), &Training::default()).unwrap();
        assert_eq!(misnamed.format, format, "{model}/{file} under another name");
    }
}

#[test]
fn fused_attention_keeps_no_scores_and_eager_attention_does() {
    let squares =
        |model: &carma_estimate::model::Model| model.layers.iter().filter(|layer| matches!(layer.output.dimensions(), [2, 64, 64])).count();
    let fused = model("bert", "config.json");
    assert_eq!(count(&fused, |kind| matches!(kind, LayerKind::Attention { heads: 2, .. })), 2);
    assert_eq!(squares(&fused), 0);
    let config = String::from_utf8(bytes("bert", "config.json")).unwrap().replacen('{', "{\"_attn_implementation\": \"eager\",", 1);
    let eager = parse::read(config.as_bytes(), None, &Training { sequence: Some(64), ..Training::default() }).unwrap().model;
    assert_eq!(count(&eager, |kind| matches!(kind, LayerKind::Attention { .. })), 0);
    // Scores, scaled, masked, softmax and its dropout, for each of two layers.
    assert_eq!(squares(&eager), 10);
    assert_eq!(eager.parameters(), fused.parameters());
}

#[test]
fn xlnet_has_scores_by_content_and_by_distance() {
    let xlnet = model("xlnet", "repr.txt");
    let far = xlnet.layers.iter().filter(|layer| layer.output.dimensions() == [2, 64, 128] && layer.class == "einsum").count();
    assert_eq!(far, 2, "scores for every distance, in each layer");
}

#[test]
fn logits_are_copied_to_float32_for_the_loss() {
    for file in ["config.json", "repr.txt", "weights.safetensors"] {
        let gpt2 = model("gpt2", file);
        let [.., logits, loss] = gpt2.layers.as_slice() else { panic!("too few layers") };
        assert_eq!((logits.output.dimensions(), loss.output.dimensions()), (&[64, 1000][..], &[64, 1000][..]));
        assert_eq!((&loss.kind, loss.element), (&LayerKind::Softmax, Some(ElementType::Float32)));
        assert!(gpt2.layers.iter().any(|layer| layer.kind == LayerKind::Activation(Activation::Composed { kept: 5 })), "{file}");
    }
}

#[test]
fn assumptions_are_reported() {
    let unsaid = parse::read(&bytes("bert", "config.json"), None, &Training::default()).unwrap();
    assert!(unsaid.notes.contains(&"sequence length not given: 64 assumed from max_position_embeddings".to_owned()), "{:?}", unsaid.notes);
    let printed = parse::read(&bytes("resnet18", "repr.txt"), None, &Training::default()).unwrap();
    assert!(printed.notes.iter().any(|note| note.starts_with("input size not given: [3, 224, 224]")), "{:?}", printed.notes);
}

#[test]
fn batch_sizes_are_read_from_descriptions() {
    let batch = |model, file| description(model, file).hints.batch;
    assert_eq!(batch("resnet18", "torchsummary.txt"), None);
    assert_eq!(batch("resnet18", "torchinfo.txt"), Some(2));
    assert_eq!(batch("resnet18", "graph.onnx"), Some(2));
    let written = "Layer (type)  Output Shape  Param #\nLinear-1  [32, 10]  7,850\nReLU-2  [32, 10]  0\n";
    assert_eq!(text(written).hints.batch, Some(32));
}

#[test]
fn a_data_parallel_wrapper_is_unwrapped() {
    let inner = String::from_utf8(bytes("gpt2", "repr.txt")).unwrap();
    let wrapped = format!("DataParallel(\n  (module): {})\n", inner.trim_end().to_owned() + "\n");
    let read = |text: &str| parse::read(text.as_bytes(), None, &Training::default()).unwrap().model;
    assert_eq!(read(&wrapped), read(&inner));
}

#[test]
fn an_input_s_size_scales_a_printed_model() {
    let read = |side: u64| {
        let training = Training { input: Some(vec![3, side, side]), ..Training::default() };
        parse::read(&bytes("resnet18", "repr.txt"), None, &training).unwrap().model
    };
    let (large, small) = (read(224), read(112));
    assert_eq!(large.parameters(), small.parameters());
    assert!(large.activations() > 3 * small.activations());
    assert!(count(&large, |kind| *kind == LayerKind::Reshape(Reshaping::View)) > 0);
}
