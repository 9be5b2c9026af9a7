//! Edges that no summary has: sums, joins and gates.

use carma_estimate::model::{LayerKind, Source};

use crate::parse_lab::{count, model, read_by};

const RESNET18: [&str; 5] = ["torchsummary.txt", "torchinfo.txt", "torchinfo_shallow.txt", "repr.txt", "graph.onnx"];

#[test]
fn the_sums_of_a_resnet_join_the_main_path_with_the_shortcut() {
    for file in RESNET18 {
        let resnet = model("resnet18", file);
        let sums: Vec<_> = resnet.layers.iter().filter(|layer| layer.kind == LayerKind::Add).collect();
        assert_eq!(sums.len(), 8, "{file}");
        for (number, sum) in sums.iter().enumerate() {
            let read = read_by(&resnet, sum);
            assert_eq!(read.len(), 2, "{file}: sum {number}");
            assert!(matches!(read[0].kind, LayerKind::Normalisation(_)), "{file}: sum {number} reads {}", read[0].name);
            // The first block of stages 2 to 4 changes the shape, and has a shortcut with a convolution and a normalisation.
            let changes = matches!(number, 2 | 4 | 6);
            assert_eq!(matches!(read[1].kind, LayerKind::Normalisation(_)), changes, "{file}: sum {number} reads {}", read[1].name);
            assert!(read.iter().all(|read| read.output == sum.output), "{file}: sum {number}");
        }
    }
}

#[test]
fn the_shortcut_convolution_of_a_resnet_reads_the_block_s_input() {
    for file in RESNET18 {
        let resnet = model("resnet18", file);
        let shortcuts: Vec<_> =
            resnet.layers.iter().filter(|layer| matches!(layer.kind, LayerKind::Convolution { kernel: [1, 1], .. })).collect();
        assert_eq!(shortcuts.len(), 3, "{file}");
        for shortcut in shortcuts {
            let read = read_by(&resnet, shortcut);
            assert!(matches!(read[0].kind, LayerKind::Activation(_)), "{file}: {}", read[0].name);
            assert!(matches!(shortcut.kind, LayerKind::Convolution { stride: [2, 2], .. }), "{file}: {:?}", shortcut.kind);
            let readers = resnet.layers.iter().filter(|layer| layer.inputs == shortcut.inputs).count();
            assert_eq!(readers, 2, "{file}: the block's first convolution reads the same");
        }
    }
}

#[test]
fn inception_blocks_join_their_branches() {
    for file in ["torchsummary.txt", "torchinfo.txt", "repr.txt"] {
        let inception = model("inception_v3", file);
        let joins: Vec<_> = inception.layers.iter().filter(|layer| layer.kind == LayerKind::Concatenate).collect();
        let widths: Vec<u64> = joins.iter().map(|join| join.output.dimensions()[0]).collect();
        assert_eq!(widths, [256, 288, 288, 768, 768, 768, 768, 768, 1280, 2048, 2048], "{file}");
        let branches: Vec<usize> = joins.iter().map(|join| join.inputs.len()).collect();
        assert_eq!(branches, [4, 4, 4, 3, 4, 4, 4, 4, 3, 6, 6], "{file}");
        // Nothing is left over but the classifier's result.
        let read: Vec<Source> = inception.layers.iter().flat_map(|layer| layer.inputs.clone()).collect();
        let loose = (0..inception.layers.len()).filter(|&place| !read.contains(&Source::Layer(place))).count();
        assert_eq!(loose, 1, "{file}");
    }
}

#[test]
fn gates_multiply_their_inputs() {
    for file in ["torchsummary.txt", "torchinfo.txt", "repr.txt"] {
        let efficient = model("efficientnet_b0_timm", file);
        let gates: Vec<_> = efficient.layers.iter().filter(|layer| layer.kind == LayerKind::Multiply).collect();
        assert_eq!(gates.len(), 16, "{file}");
        for gate in gates {
            let read = read_by(&efficient, gate);
            assert_eq!(read[0].output, gate.output, "{file}");
            assert_eq!(read[1].output.dimensions()[1..], [1, 1], "{file}");
        }
    }
}

#[test]
fn dense_layers_read_all_earlier_outputs() {
    for file in ["torchinfo.txt", "repr.txt"] {
        let dense = model("densenet121", file);
        // A join before each layer but the first of four blocks, and one after each block.
        assert_eq!(count(&dense, |kind| *kind == LayerKind::Concatenate), 58, "{file}");
    }
}

#[test]
fn blocks_of_a_vision_transformer_have_two_sums() {
    for file in ["torchinfo.txt", "repr.txt"] {
        let vit = model("vit_b_16", file);
        let attention = count(&vit, |kind| matches!(kind, LayerKind::Attention { heads: 12, .. }));
        assert_eq!(attention, 12, "{file}");
        let sums = vit.layers.iter().filter(|layer| layer.kind == LayerKind::Add && layer.inputs.len() == 2).count();
        assert_eq!(sums, 24, "{file}");
    }
}

#[test]
fn blocks_are_named_for_checkpointing() {
    for file in ["torchsummary.txt", "torchinfo.txt", "torchinfo_shallow.txt", "repr.txt"] {
        let resnet = model("resnet18", file);
        let blocks: std::collections::BTreeSet<&str> = resnet.layers.iter().filter_map(|layer| layer.block.as_deref()).collect();
        assert_eq!(blocks.len(), 8, "{file}: {blocks:?}");
        let inside = resnet.layers.iter().filter(|layer| layer.block.is_some()).count();
        assert_eq!(inside, resnet.layers.len() - 7, "{file}: all but stem and classifier");
    }
}

#[test]
fn grouped_convolutions_follow_from_their_parameters() {
    for file in ["torchsummary.txt", "repr.txt"] {
        let resnext = model("resnext50", file);
        assert_eq!(count(&resnext, |kind| matches!(kind, LayerKind::Convolution { groups: 32, kernel: [3, 3], .. })), 16, "{file}");
    }
}
