//! Drawn sets: the same for the same seed, read back as they were written, and cleaned with reasons.

use carma_estimate::Family;
use carma_estimate::model::Model;
use carma_estimate::training::Training;
use carma_learn::data::{Label, Observation, read};
use carma_learn::dataset::{Keep, Reason, clean, generate, write};
use carma_testing::need;

fn by_size(model: &Model, training: &Training) -> f64 {
    500.0 + (16 * model.parameters() + 4 * training.batch * model.activations()) as f64 / f64::from(1 << 20)
}

fn drawn(family: Family, seed: u64) -> Vec<Observation> {
    generate(family, 60, seed, Label::Static, &by_size)
}

#[test]
fn the_same_seed_draws_the_same_networks() {
    for family in Family::ALL {
        assert_eq!(drawn(family, 4), drawn(family, 4));
        assert_ne!(drawn(family, 4), drawn(family, 5));
    }
}

#[test]
fn written_data_reads_back() {
    for family in Family::ALL {
        let observations = drawn(family, 11);
        let mut table = Vec::new();
        assert_eq!(write(&observations, family, &mut table).unwrap(), 60);
        let again = read(table.as_slice()).unwrap();
        for (written, read) in observations.iter().zip(&again) {
            assert_eq!((&written.network, written.batch, written.label), (&read.network, read.batch, read.label), "{family}");
            assert_eq!((written.measured, written.crashed), (read.measured, read.crashed));
            let slopes = read.model().unwrap().layers.iter().filter(|layer| layer.class == "PReLU").count() as u64;
            assert_eq!(written.stated_parameters, read.stated_parameters.map(|parameters| parameters + slopes));
        }
    }
}

#[test]
fn rows_are_dropped_for_a_reason() {
    let mut rows: Vec<Observation> = drawn(Family::Mlp, 2).into_iter().take(6).collect();
    let fine = rows[0].clone();
    rows[1] = fine.clone();
    rows[2].crashed = true;
    rows[3].measured = None;
    rows[4].measured = Some(1e6);
    rows[5].measured = Some(0.0);
    let cleaned = clean(rows.clone(), Keep::default());
    assert_eq!(cleaned.kept, [fine]);
    let expected = [Reason::Duplicate, Reason::Crashed, Reason::Unmeasured, Reason::TooLittle, Reason::TooMuch].map(|reason| (reason, 1));
    assert_eq!(cleaned.reasons(), expected);
    assert_eq!(clean(rows, Keep { crashed: true }).kept.len(), 2);
}

/// The published tables hold nothing impossible.
#[test]
fn published_rows_are_possible() {
    for (table, crashed) in [("memory_mlp.csv", 0), ("memory_cnn_random.csv", 267), ("memory_transformer_random.csv", 1)] {
        let observations = need!(crate::data::published(table));
        let reasons = clean(observations, Keep::default()).reasons();
        let expected: Vec<_> = (crashed > 0).then_some((Reason::Crashed, crashed)).into_iter().collect();
        assert_eq!(reasons, expected, "{table}");
    }
}
