//! Fixtures and what tests ask of a model.

use std::path::{Path, PathBuf};

use carma_estimate::model::{Layer, LayerKind, Model, Source};
use carma_estimate::parse::{self, Description};
use carma_estimate::training::Training;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every description among the fixtures, by model and file.
pub(crate) fn all() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let model = folder.file_name().unwrap().to_str().unwrap().to_owned();
        found.extend(std::fs::read_dir(&folder).unwrap().map(|entry| (model.clone(), entry.unwrap().path())));
    }
    found.sort();
    assert!(found.len() > 60, "fixtures are missing");
    found
}

pub(crate) fn bytes(model: &str, file: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(model).join(file)).unwrap()
}

pub(crate) fn description(model: &str, file: &str) -> Description {
    // Without its name, so that the content alone tells the format.
    parse::read(&bytes(model, file), None, &training(model)).unwrap_or_else(|error| panic!("{model}/{file}: {error}"))
}

pub(crate) fn model(name: &str, file: &str) -> Model {
    description(name, file).model
}

/// As the fixtures were made.
pub(crate) fn training(model: &str) -> Training {
    let input = if model == "vit" { Some(vec![3, 64, 64]) } else { None };
    Training { batch: 2, sequence: Some(64), input, ..Training::default() }
}

pub(crate) fn text(content: &str) -> Description {
    parse::read(content.as_bytes(), None, &Training::default()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn count(model: &Model, kind: impl Fn(&LayerKind) -> bool) -> usize {
    model.layers.iter().filter(|layer| kind(&layer.kind)).count()
}

/// Elements of all outputs that are not views.
pub(crate) fn computed(model: &Model) -> u64 {
    model.layers.iter().filter(|layer| !matches!(layer.kind, LayerKind::Reshape(_))).map(|layer| layer.output.per_sample()).sum()
}

/// The layers that a layer reads.
pub(crate) fn read_by<'m>(model: &'m Model, layer: &Layer) -> Vec<&'m Layer> {
    layer.inputs.iter().filter_map(|source| if let Source::Layer(place) = source { model.layers.get(*place) } else { None }).collect()
}

/// What must hold of every model.
pub(crate) fn check(model: &Model, name: &str) {
    for (place, layer) in model.layers.iter().enumerate() {
        for source in &layer.inputs {
            match *source {
                Source::Layer(read) => assert!(read < place, "{name}: {} reads a later layer", layer.name),
                Source::Input(input) => assert!(input < model.inputs.len().max(1), "{name}: {} reads input {input}", layer.name),
            }
        }
        let sum = layer.tensors.iter().fold(0, |sum: u64, &each| sum.saturating_add(each));
        assert_eq!(sum, layer.parameters, "{name}: tensors of {}", layer.name);
        if let LayerKind::Dropout { probability } = layer.kind {
            assert!((0.0..=1.0).contains(&probability), "{name}: {}", layer.name);
        }
    }
    let names: std::collections::HashSet<&str> = model.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names.len(), model.layers.len(), "{name}: names are unique");
}
