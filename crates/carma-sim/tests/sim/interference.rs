//! The interference model: fitted, applied, and held against published facts.

use std::fmt::Write;

use carma_core::{CollocationMode, Settings};
use carma_sim::{
    Catalogue, InterferenceModel, ModelError, Neighbours, PairRun, Physics, Sharing, Simulation, calibrate, mean_absolute_error,
    read_crowds, read_pairs,
};
use proptest::prelude::*;

use crate::lab::Lab;

/// Every pair of some workloads, as a model says they run.
fn made_up_pairs(model: &InterferenceModel, catalogue: &Catalogue) -> Vec<PairRun> {
    let ids: Vec<_> = catalogue.iter().map(|(id, _)| id).step_by(6).collect();
    let pairs = ids.iter().enumerate().flat_map(|(place, one)| ids[place..].iter().map(move |other| [*one, *other]));
    let run = |workloads| {
        let pair = PairRun { workloads, alone: [300.0, 400.0], paired: [1.0, 1.0] };
        let scored = model.score_pair(catalogue, &pair);
        PairRun { paired: scored.map(|one| one.predicted), ..pair }
    };
    pairs.map(run).collect()
}

#[test]
fn a_fit_finds_the_model_its_pairs_were_made_by() {
    let catalogue = Catalogue::shipped();
    let truth = InterferenceModel { families: [].into(), workloads: [].into(), ..InterferenceModel::shipped() };
    let found = calibrate(&made_up_pairs(&truth, &catalogue), &[], &catalogue);
    assert!(found.fitted < 0.002 && found.held_out.families < 0.03, "{found:?}");
    assert!((found.model.pressure.memory - truth.pressure.memory).abs() < 0.1, "{:?}", found.model.pressure);
}

#[test]
fn an_unusual_workload_is_learned_from_its_pairs() {
    let catalogue = Catalogue::shipped();
    let truth = InterferenceModel::shipped();
    let pairs = made_up_pairs(&truth, &catalogue);
    let found = calibrate(&pairs, &[], &catalogue);
    let plain = InterferenceModel { families: [].into(), workloads: [].into(), ..truth };
    let error = |model: &InterferenceModel| {
        mean_absolute_error(&pairs.iter().flat_map(|pair| model.score_pair(&catalogue, pair)).collect::<Vec<_>>())
    };
    assert!(error(&found.model) < error(&plain) / 3.0, "{} {}", error(&found.model), error(&plain));
}

#[test]
fn a_pair_takes_turns_and_the_longer_ends_alone() {
    // Each adds 0.5 to the other's time. Start-up takes 8.2 s of both. The shorter trains 91.8 s beside the longer, in 137.7 s, and ends at
    // 145.9; by then the longer has done 100 s of 200 and does the rest alone.
    let lab = Lab::new("1xA100-40GB", "magm");
    let small = lab.catalogue.find("small").unwrap();
    let pair = PairRun { workloads: [small, small], alone: [100.0, 200.0], paired: [1.0, 1.0] };
    let [short, long] = lab.interference.score_pair(&lab.catalogue, &pair).map(|scored| scored.predicted);
    assert!((short - 145.9).abs() < 1e-6 && (long - 245.9).abs() < 1e-6, "{short} {long}");
}

#[test]
fn constants_that_cannot_be_are_refused_by_name() {
    let shipped = toml_of(&InterferenceModel::shipped());
    for (key, value) in [("level", "nan"), ("crowd", "inf"), ("mps", "-1.0"), ("pair_deviation", "nan")] {
        let broken: String = shipped.lines().fold(String::new(), |mut text, line| {
            let line = if line.starts_with(&format!("{key} = ")) { format!("{key} = {value}") } else { line.to_owned() };
            writeln!(text, "{line}").unwrap();
            text
        });
        let error = InterferenceModel::parse(&broken).unwrap_err();
        assert!(matches!(error, ModelError::Value { .. }) && error.to_string().starts_with(key), "{error}");
    }
    assert_eq!(InterferenceModel::parse(&shipped).unwrap(), InterferenceModel::shipped());
}

fn toml_of(model: &InterferenceModel) -> String {
    toml::to_string(model).unwrap()
}

#[test]
fn invalid_tables_are_refused_with_their_line() {
    let catalogue = Catalogue::shipped();
    let pairs = |rows: &str| read_pairs(format!("a,b,solo_a_s,solo_b_s,pair_a_s,pair_b_s\n{rows}").as_bytes(), &catalogue);
    let crowds = |row: &str| read_crowds(format!("trial,jobs,solo_s,mean_slowdown\n{row}").as_bytes(), &catalogue);
    let good = "unet_voc,unet_voc,1,1,2,2\n";
    let errors = [
        pairs("").unwrap_err().to_string(),
        pairs("alexnet,unet_voc,1,1,2,2").unwrap_err().to_string(),
        pairs("unet_voc,unet_voc,1,-1,2,2").unwrap_err().to_string(),
        pairs("unet_voc,unet_voc,1,NaN,2,2").unwrap_err().to_string(),
        pairs("unet_voc,unet_voc,1,1,2").unwrap_err().to_string(),
        crowds("t,unet_voc;unet_voc,100,1.2").unwrap_err().to_string(),
        crowds("t,unet_voc,x,1.2").unwrap_err().to_string(),
        Catalogue::from_solo(
            "workload,gpu_rank,end_to_end_s,peak_mib,gpu_util_pct,smact,smocc,drama,power_w\nw,0,10,100,50,1.5,0.1,0.1,60\n".as_bytes(),
        )
        .unwrap_err()
        .to_string(),
    ];
    insta::assert_snapshot!(errors.join("\n"));
    let some = pairs(&format!("{good}alexnet,unet_voc,1,1,2,2")).unwrap();
    assert_eq!((some.runs.len(), some.unknown.into_iter().collect::<Vec<_>>()), (1, vec!["alexnet".to_owned()]));
}

/// The combined progress per second of this many copies on one GPU.
fn throughput(workload: &str, copies: usize, sharing: Sharing) -> f64 {
    let mut lab = Lab::new("1xA100-40GB", "or-rr");
    lab.catalogue = Catalogue::shipped();
    lab.interference = InterferenceModel { pair_deviation: 0.0, ..InterferenceModel::shipped() };
    lab.sharing = sharing;
    lab.physics.host_contention = Physics::default().host_contention;
    lab.settings = Settings { policy: Some("or-rr".to_owned()), ..lab.settings };
    for _ in 0..copies {
        lab = lab.job(0, workload);
    }
    // Long enough for the time of starting to be nothing.
    lab.trace.jobs.iter_mut().for_each(|job| job.duration = carma_core::Seconds::new(1e6).ok());
    let run = Simulation { timeline: false, ..lab.simulation() }.run().unwrap();
    assert_eq!(run.summary().oom_attempts, 0);
    copies as f64 * 1e6 / run.summary().makespan
}

/// Published: a small model gains 3 to 5 times with up to 7 copies, a large one nothing, and MPS is ahead of the other ways. (Published too:
/// MIG is ahead of streams. Here it is behind for the smallest models, whose kernels a slice holds better than SMACT says.)
#[test]
fn small_models_gain_from_sharing_and_large_ones_do_not() {
    let small = "resnet18_cifar100_bs32_20e";
    let [streams, mps, mig] = [Sharing::Streams, Sharing::Mps, Sharing::Mig(1)].map(|sharing| throughput(small, 7, sharing));
    assert!((3.0..5.5).contains(&streams) && (3.0..5.5).contains(&mps) && (2.5..5.5).contains(&mig), "{streams} {mps} {mig}");
    assert!(mps > streams && mps > mig, "{streams} {mps} {mig}");
    for large in ["vgg16_imagenet_bs64", "bert_large_wiki_bs8", "xception_imagenet_bs64"] {
        let gain = throughput(large, 3, Sharing::Streams);
        assert!((0.5..1.35).contains(&gain), "{large}: {gain}");
    }
}

proptest! {
    #[test]
    fn more_co_runners_never_speed_up_a_job(pressures in prop::collection::vec(0.001..5.0_f64, 1..8), sensitivity in 0.01..2.0_f64) {
        let model = InterferenceModel::shipped();
        let mut neighbours = Neighbours::default();
        let mut before = model.slowdown(sensitivity, neighbours, CollocationMode::Streams);
        prop_assert!((before - 1.0).abs() < 1e-12);
        for pressure in pressures {
            neighbours.add(pressure);
            let now = model.slowdown(sensitivity, neighbours, CollocationMode::Streams);
            prop_assert!(now > before, "{now} after {before}");
            let under_mps = model.slowdown(sensitivity, neighbours, CollocationMode::Mps { exclusive_process: false });
            prop_assert!(under_mps < now);
            before = now;
        }
    }
}
