//! The classifiers: what can be learned is, the same each time, and what is written can be read.

use carma_estimate::Family;
use carma_estimate::learned::Features;
use carma_estimate::learned::gpumemnet::{Architecture, GpuMemNet};
use carma_estimate::model::Model;
use carma_estimate::training::Training;
use carma_learn::data::{Label, Observation};
use carma_learn::dataset::generate;
use carma_learn::evaluate::{Folds, k_fold};
use carma_learn::gpumemnet::{Schedule, classes_for, labelled, train};
use carma_testing::need;

/// Short: tests are not optimised.
const SHORT: Schedule = Schedule { epochs: 12, patience: 12, batch: 32, rate: 2e-2, held_out: 0.15 };

fn by_size(model: &Model, training: &Training) -> f64 {
    500.0 + (16 * model.parameters() + 8 * training.batch * model.activations()) as f64 / f64::from(1 << 20)
}

fn drawn(family: Family, rows: usize) -> Vec<Observation> {
    generate(family, rows, 8, Label::Static, &by_size)
}

fn trained(observations: &[Observation], architecture: Architecture, size: f64, schedule: Schedule) -> GpuMemNet {
    let rows = labelled(observations, size);
    let classes = classes_for(size, rows.iter().map(|(.., class)| *class));
    let rows: Vec<(&Features, usize)> = rows.iter().map(|(_, features, class)| (features, *class)).collect();
    train(architecture, classes, &rows, 3, schedule, &|| ())
}

fn accuracy(network: &GpuMemNet, observations: &[Observation], size: f64) -> f64 {
    let rows = labelled(observations, size);
    let right = rows.iter().filter(|(_, features, class)| network.predict(features).class() == *class).count();
    right as f64 / rows.len() as f64
}

#[test]
fn both_architectures_learn_what_can_be_learned() {
    // Their equal layers make them quick to read.
    let observations = drawn(Family::Transformer, 80);
    for architecture in [Architecture::Mlp, Architecture::Transformer] {
        let network = trained(&observations, architecture, 8192.0, Schedule { epochs: 40, ..SHORT });
        let found = accuracy(&network, &observations, 8192.0);
        assert!(found > 0.7, "{architecture:?}: {found}");
        assert_eq!((network.family(), network.architecture()), (Family::Transformer, architecture));
    }
}

#[test]
fn written_weights_read_back_and_are_deterministic() {
    let observations = drawn(Family::Transformer, 40);
    let network = trained(&observations, Architecture::Transformer, 8192.0, SHORT);
    let text = network.write().unwrap();
    assert_eq!(text, trained(&observations, Architecture::Transformer, 8192.0, SHORT).write().unwrap());
    let again = GpuMemNet::read(&text).unwrap();
    assert_eq!(again.write().unwrap(), text);
    for observation in &observations {
        let model = observation.model().unwrap();
        let [one, other] = [&network, &again].map(|network| network.predict_model(&model, observation.batch));
        assert_eq!(one, other);
        assert!(other.bound(0.99) >= other.bound(0.5) && (other.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
}

#[test]
fn damaged_weights_are_refused() {
    let text = trained(&drawn(Family::Mlp, 30), Architecture::Mlp, 1024.0, SHORT).write().unwrap();
    for (from, to) in [
        ("\"depth\":1", "\"depth\":2"),
        ("\"depth\":1", "\"depth\":-1"),
        ("\"depth\":1", "\"depth\":99999999"),
        ("\"encoder\":null", "\"encoder\":7"),
        ("\"class_mib\":1024.0", "\"class_mib\":0.0"),
        ("\"classes\":", "\"classes\":9999999"),
        ("\"members\":[", "\"members\":[],\"other\":["),
        ("{\"family\"", "{\"other\""),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(GpuMemNet::read(&text.replacen(from, to, 1)).is_err(), "{to}");
    }
    assert!(GpuMemNet::read(&text[..text.len() / 2]).is_err());
}

#[test]
fn the_shipped_weights_cover_every_family() {
    for family in Family::ALL {
        for architecture in [Architecture::Mlp, Architecture::Transformer] {
            let network = GpuMemNet::shipped(family, architecture).unwrap();
            let prediction = network.predict_model(&drawn(family, 1)[0].model().unwrap(), 8);
            assert!(prediction.point() >= 1024.0, "{prediction:?}");
        }
    }
}

/// A short training on a part of the published rows: what it must do at least.
#[test]
fn unseen_published_rows_fall_into_their_class() {
    let observations = need!(crate::data::published("memory_mlp.csv"));
    let part: Vec<Observation> = observations.into_iter().step_by(5).collect();
    let rows = labelled(&part, 1024.0);
    let classes = classes_for(1024.0, rows.iter().map(|(.., class)| *class));
    let train_on = |seen: &[&_], seed| {
        let seen: Vec<(&Features, usize)> = seen.iter().map(|(_, features, class): &&(_, Features, usize)| (features, *class)).collect();
        train(Architecture::Mlp, classes, &seen, seed, SHORT, &|| ())
    };
    let right =
        k_fold(&rows, Folds { count: 2, seed: 21 }, train_on, |network, (_, features, class)| network.predict(features).class() == *class);
    let share = right.iter().filter(|right| **right).count() as f64 / right.len() as f64;
    assert!(share > 0.9, "{share}");
}
