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
