//! What an estimate costs, from the text of a description to the answer, and how that grows with layers and events.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::collections::HashMap;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use carma_bench::{Calls, Case, Suite};
use carma_estimate::Family;
use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::confidence::DEFAULT_CONFIDENCE;
use carma_estimate::estimators::{Answer, Estimator, Question};
use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::{Architecture, Buffers, GpuMemNet};
use carma_estimate::model::{Activation, Layer, LayerKind, Model, Normalisation, Shape, Source};
use carma_estimate::parse;
use carma_estimate::stack::Stack;
use carma_estimate::trace::{Event, Purpose, Recording, StorageId, replay};
use carma_estimate::training::Training;

const BATCH: u64 = 32;
/// For calls of up to a millisecond.
const SUB_MILLISECOND: Calls = Calls { timed: 300, counted: 10 };
const EVENTS: usize = 1_000_000;

/// Descriptions by size.
const DESCRIPTIONS: [(&str, &str); 6] = [
    ("squeezenet, torchsummary", include_str!("../tests/fixtures/squeezenet/torchsummary.txt")),
    ("resnet18, torchsummary", include_str!("../tests/fixtures/resnet18/torchsummary.txt")),
    ("bert, config.json", include_str!("../tests/fixtures/bert/config.json")),
    ("resnet50, torchsummary", include_str!("../tests/fixtures/resnet50/torchsummary.txt")),
    ("inception_v3, torchinfo", include_str!("../tests/fixtures/inception_v3/torchinfo.txt")),
    ("densenet121, print(model)", include_str!("../tests/fixtures/densenet121/repr.txt")),
];

fn training() -> Training {
    Training { batch: BATCH, ..Training::default() }
}

fn model(text: &str, training: &Training) -> Model {
    parse::read(text.as_bytes(), None, training).unwrap().model
}

fn estimate(estimator: Estimator, model: &Model, training: &Training) -> Answer {
    let (stack, allocator) = (&Stack::built_in()[0], AllocatorSettings::default());
    let question = Question { model: Some(model), training, recording: None, stack, allocator, gpu: None, confidence: DEFAULT_CONFIDENCE };
    estimator.estimate(&question).unwrap()
}

fn from_description(estimator: Estimator, text: &str, training: &Training) {
    black_box(estimate(estimator, &model(text, training), training));
}

/// Reading a description and answering, beside reading it for a formula that visits every layer once.
fn descriptions() {
    let mut suite = Suite::with_calls("Parse + estimate; reference: parse + Horus' formula on the same text", SUB_MILLISECOND);
    for (name, text) in DESCRIPTIONS {
        let described = model(text, &training());
        let layers = described.layers.len();
        let reference = format!("horus: {name}");
        let full = format!("static: {name}, {layers} layers");
        for (case, estimator) in [(&reference, Estimator::Horus), (&full, Estimator::Static)] {
            let call = |training: &mut Training| from_description(estimator, text, training);
            suite.run(&Case { name: case, units: 1, reference: &reference, setup: &training, prepare: &|_| (), call: &call });
        }
    }
}

/// All descriptions of the tests, and the published ones in `CARMA_DATA/summaries`, if that is set: how long nearly all of them take.
fn all_descriptions() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let published = std::env::var_os("CARMA_DATA").map(|data| Path::new(&data).join("summaries"));
    let mut files: Vec<PathBuf> =
        files_below(&fixtures).into_iter().chain(published.iter().flat_map(|folder| files_below(folder))).collect();
    files.sort();
    let mut suite = Suite::with_calls("Parse + static estimate of every description; reference: itself", Calls { timed: 51, counted: 0 });
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let file_name = file.file_name().and_then(|name| name.to_str());
        // The files also hold the program that made them, and their totals.
        if parse::read(&bytes, file_name, &training()).is_err() {
            continue;
        }
        let shown: PathBuf = file.iter().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
        let name = shown.display().to_string();
        let call = |training: &mut Training| {
            let described = parse::read(&bytes, file_name, training).unwrap().model;
            black_box(estimate(Estimator::Static, &described, training));
        };
        suite.run(&Case { name: &name, units: 1, reference: &name, setup: &training, prepare: &|_| (), call: &call });
    }
    suite.print_quantile(0.95);
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Convolutions with normalisation and activation: all alike, or each wider than the last, so that no two are.
fn network(layers: usize, pyramid: bool) -> Model {
    let mut model = Model::default();
    let mut channels = 16;
    for block in 0..layers.div_ceil(3) {
        let width = if pyramid { 16 + 4 * block as u64 } else { 16 };
        let shape = Shape::batched([width, 32, 32]);
        let kinds = [
            ("Conv2d", LayerKind::Convolution { kernel: [3, 3], stride: [1, 1], groups: 1, transposed: false }, 9 * channels * width),
            ("BatchNorm2d", LayerKind::Normalisation(Normalisation::Batch), 2 * width),
            ("ReLU", LayerKind::Activation(Activation::KeepsOutput), 0),
        ];
        for (class, kind, parameters) in kinds {
            let place = model.layers.len();
            let source = place.checked_sub(1).map_or(Source::Input(0), Source::Layer);
            let layer = Layer::new(format!("{class}-{place}"), class, kind, vec![source], shape.clone());
            model.layers.push(layer.with_tensors([parameters]));
        }
        channels = width;
    }
    model
}

/// The shipped classifiers, features included, beside Horus' formula on the same layers.
fn classifiers() {
    let mut suite = Suite::new("GPUMemNet on convolutional networks; reference: Horus' formula on the same layers");
    for (shape, pyramid) in [("uniform", false), ("pyramid", true)] {
        for layers in [15, 30, 60] {
            let setup = || (network(layers, pyramid), Buffers::default());
            let reference = format!("horus: {shape}, {layers} layers");
            let horus = |(model, _): &mut (Model, Buffers)| {
                black_box(estimate(Estimator::Horus, model, &training()));
            };
            suite.run(&Case { name: &reference, units: 1, reference: &reference, setup: &setup, prepare: &|_| (), call: &horus });
            for (name, architecture) in [("MLP", Architecture::Mlp), ("Transformer", Architecture::Transformer)] {
                let ensemble = GpuMemNet::shipped(Family::Cnn, architecture).unwrap();
                let call = |(model, buffers): &mut (Model, Buffers)| {
                    black_box(ensemble.predict_with(&Features::of(model, BATCH, Family::Cnn), buffers));
                };
                let name = format!("{name} ensemble: {shape}, {layers} layers");
                suite.run(&Case { name: &name, units: 1, reference: &reference, setup: &setup, prepare: &|_| (), call: &call });
            }
        }
    }
}

/// Allocations and frees as a training has them: many sizes, some long-lived, about a thousand alive at once. The same each time.
fn made_up(events: usize) -> Vec<Event> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut alive: Vec<StorageId> = Vec::new();
    let mut next = 0;
    let event = |_| {
        if alive.len() < 500 || (alive.len() < 1500 && random.bool()) {
            alive.push(next);
            next += 1;
            // From 512 bytes to 64 MiB, small ones as often as large ones.
            let bytes = (512 << random.u32(0..17)) + 512 * random.u64(0..8);
            Event::Allocate { storage: next - 1, bytes, purpose: Purpose::Activations }
        } else {
            Event::Free(alive.swap_remove(random.usize(0..alive.len())))
        }
    };
    (0..events).map(event).collect()
}

/// The most that is alive, with no allocator at all.
fn live_peak(events: &[Event]) -> u64 {
    let mut sizes: HashMap<StorageId, u64> = HashMap::new();
    let (mut live, mut peak) = (0, 0);
    for event in events {
        match *event {
            Event::Allocate { storage, bytes, .. } => {
                sizes.insert(storage, bytes);
                live += bytes;
                peak = u64::max(peak, live);
            }
            Event::Free(storage) => live -= sizes.remove(&storage).unwrap_or(0),
            _ => {}
        }
    }
    peak
}

fn text_of(events: &[Event]) -> String {
    let mut text = "carma-memory-trace 1\n{}\n".to_owned();
    for event in events {
        match event {
            Event::Allocate { storage, bytes, .. } => writeln!(text, "+ {storage} {bytes} a"),
            Event::Free(storage) => writeln!(text, "- {storage}"),
            _ => Ok(()),
        }
        .unwrap();
    }
    text
}

/// What one event of a recording costs, by how many there are.
fn recordings() {
    let calls = Calls { timed: 5, counted: 1 };
    let mut suite = Suite::with_calls("One event of a recording; reference: a map of live sizes over the same events", calls);
    for events in [EVENTS / 100, EVENTS] {
        let reference = format!("map of live sizes, {events} events");
        let setup = || made_up(events);
        let map = |events: &mut Vec<Event>| {
            black_box(live_peak(events));
        };
        suite.run(&Case { name: &reference, units: events, reference: &reference, setup: &setup, prepare: &|_| (), call: &map });
        for (allocator, expandable_segments) in [("", false), (", expandable segments", true)] {
            let settings = AllocatorSettings { expandable_segments, ..AllocatorSettings::default() };
            let call = |events: &mut Vec<Event>| {
                black_box(replay(events.iter().copied(), settings, &Stack::built_in()[0]).unwrap());
            };
            let name = format!("replay{allocator}, {events} events");
            suite.run(&Case { name: &name, units: events, reference: &reference, setup: &setup, prepare: &|_| (), call: &call });
        }
        let read = |text: &mut String| {
            black_box(Recording::read(text.as_bytes()).unwrap());
        };
        let name = format!("reading the text, {events} events");
        suite.run(&Case {
            name: &name,
            units: events,
            reference: &reference,
            setup: &|| text_of(&made_up(events)),
            prepare: &|_| (),
            call: &read,
        });
    }
}

fn main() {
    // Tables that are read once are not part of an estimate.
    black_box((Stack::built_in(), GpuMemNet::shipped(Family::Cnn, Architecture::Mlp)));
    descriptions();
    all_descriptions();
    classifiers();
    recordings();
}
