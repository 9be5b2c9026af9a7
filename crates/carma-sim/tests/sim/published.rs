//! The models held against published measurements. The data are not part of the project: these tests read the folder that `CARMA_DATA` names.

use std::collections::BTreeMap;
use std::fs::File;

use carma_core::{
    CollocationMode, Fraction, InterferenceProfile, JobId, JobSpec, MemoryNeed, Metric, MiB, Utilisation, mean, percentile, speeds,
};
use carma_sim::{Catalogue, InterferenceModel, RankProfile, calibrate, mean_absolute_error, read_crowds, read_pairs, slice_slowdown};
use carma_testing::{need, published_data};

#[test]
fn the_shipped_constants_are_what_calibrate_makes_of_the_published_pairs() {
    let data = need!(published_data());
    let open = |name: &str| File::open(data.join(name)).unwrap();
    let catalogue = Catalogue::from_solo(open("solo_a100_40gb.csv")).unwrap();
    let pairs = read_pairs(open("pairs_a100_40gb.csv"), &catalogue).unwrap().runs;
    let crowds = read_crowds(open("crowds_a100_40gb.csv"), &catalogue).unwrap().runs;
    let found = calibrate(&pairs, &crowds, &catalogue);
    assert_eq!(found.model, InterferenceModel::shipped());
    // The goals: unseen pairs to 5 %, by rows and by whole workloads; crowds to 10 %.
    assert!(found.held_out.rows < 0.05 && found.held_out.workloads < 0.05, "{:?}", found.held_out);
    assert!(mean_absolute_error(&found.crowds) < 0.10, "{:?}", found.crowds);
}

/// The scheduler's own forecast knows counters and memory alone, and its constants were fitted to counters that are off by 30 %.
#[test]
fn the_forecast_matches_published_pairs_within_ten_percent() {
    let data = need!(published_data());
    let open = |name: &str| File::open(data.join(name)).unwrap();
    let catalogue = Catalogue::from_solo(open("solo_a100_40gb.csv")).unwrap();
    let start_up = 8.2;
    let mut errors = Vec::new();
    for pair in read_pairs(open("pairs_a100_40gb.csv"), &catalogue).unwrap().runs {
        let characters = pair.workloads.map(|workload| {
            let rank = catalogue.get(workload).ranks[0];
            let utilisation = Utilisation::default().with(Metric::Smact, Some(rank.smact)).with(Metric::Drama, Some(rank.drama));
            InterferenceProfile::of(&JobSpec { utilisation, memory: MemoryNeed::known(rank.peak), ..JobSpec::new(JobId(1)) })
        });
        let together = speeds(&characters, CollocationMode::Streams);
        let alone = pair.alone.map(|seconds| seconds - start_up);
        // The longer one has the GPU for itself once the other is done.
        let until = (alone[0] / together[0]).min(alone[1] / together[1]);
        for side in [0, 1] {
            let predicted = start_up + until + (alone[side] - until * together[side]).max(0.0);
            errors.push((predicted / pair.paired[side] - 1.0).abs());
        }
    }
    assert!(errors.len() > 300 && mean(&errors) < 0.10, "{} {}", errors.len(), mean(&errors));
    eprintln!("mean error {:.4} over {}", mean(&errors), errors.len());
}

/// Step times on MIG instances: SMACT is guessed from power, which is all that is published with them.
#[test]
fn jobs_on_instances_take_about_as_long_as_published() {
    let data = need!(published_data());
    let rows = |name: &str| {
        let mut table = csv::Reader::from_path(data.join("other").join(name)).unwrap();
        table.deserialize::<BTreeMap<String, String>>().map(Result::unwrap).collect::<Vec<_>>()
    };
    let number = |row: &BTreeMap<String, String>, key: &str| row[key].parse::<f64>().unwrap();
    let name = |row: &BTreeMap<String, String>| (row["model"].clone(), row["batch"].clone());
    let profiles: BTreeMap<_, _> = rows("miso_a100_solo_power.csv")
        .iter()
        .map(|row| {
            let utilisation = number(row, "util_sm") / 100.0;
            let smact = ((number(row, "power_w") - 30.6 - 75.1 * number(row, "util_mem") / 100.0) / 242.2).clamp(0.02, utilisation);
            let [smact, utilisation] = [smact, utilisation].map(Fraction::clamped);
            (name(row), RankProfile { peak: MiB(1), smact, smocc: smact, drama: Fraction::ZERO, utilisation, power: None })
        })
        .collect();
    let steps: BTreeMap<_, f64> =
        rows("miso_a100_mig_steps.csv").iter().map(|row| ((name(row), row["slice"].clone()), number(row, "median_step_s"))).collect();
    let mut errors = Vec::new();
    for ((job, slice), step) in &steps {
        let (Some(profile), Some(whole)) = (profiles.get(job), steps.get(&(job.clone(), "7g.40gb".to_owned()))) else { continue };
        let slices = f64::from(slice[..1].parse::<u8>().unwrap());
        if slices < 7.0 {
            errors.push((slice_slowdown(profile, Fraction::clamped(slices / 7.0)) / (step / whole) - 1.0).abs());
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors.len() > 90 && percentile(&errors, 0.5) < 0.17 && mean(&errors) < 0.20, "{} {}", percentile(&errors, 0.5), mean(&errors));
}
