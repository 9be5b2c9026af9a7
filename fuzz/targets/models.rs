//! Model descriptions and recordings of dry runs, in all formats, and every estimate of what is read.

#![no_main]

use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::estimators::{Estimator, Question};
use carma_estimate::stack::Stack;
use carma_estimate::trace::Recording;
use carma_estimate::training::Training;
use carma_estimate::{parse, utilisation};
use libfuzzer_sys::fuzz_target;

/// Learned estimators read every layer; a model of this size shows all they do.
const LAYERS: usize = 300;

fuzz_target!(|bytes: &[u8]| {
    let training = Training::default();
    let stack = &Stack::built_in()[0];
    let recording = Recording::read(bytes).ok();
    let question = Question {
        model: None,
        training: &training,
        recording: recording.as_ref(),
        stack,
        allocator: AllocatorSettings::default(),
        gpu: Some(40 << 30),
        confidence: 0.9,
    };
    let _ = Estimator::DryRun.estimate(&question);
    // The name decides where the content is ambiguous.
    for name in ["model.txt", "model.onnx", "config.json", "model.toml"] {
        let Ok(description) = parse::read(bytes, Some(name), &training) else { continue };
        let model = &description.model;
        let _ = (model.parameters(), parse::write_toml(model));
        if (1..=LAYERS).contains(&model.layers.len()) {
            let _ = utilisation::estimate(model, &training);
            let question = Question { model: Some(model), ..question };
            let _ = Estimator::ALL.map(|estimator| estimator.estimate(&question));
        }
    }
});
