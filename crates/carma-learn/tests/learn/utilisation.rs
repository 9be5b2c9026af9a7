//! Training for utilisation: repeatable, with known errors on held-out runs.

use carma_core::Fraction;
use carma_estimate::Family;
use carma_estimate::utilisation::{Counter, Features, Learned, features};
use carma_learn::data::{Counters, Label, Observation};
use carma_learn::dataset::generate;
use carma_learn::utilisation::solo::{Solo, SoloRun, runs};
use carma_learn::utilisation::{Set, evaluate, train, train_and_evaluate};

use carma_testing::{Missing, need, published_data};

use crate::data::published;

/// Networks whose counters follow from their features.
fn made_up(family: Family, seed: u64) -> Vec<Observation> {
    let mut observations = generate(family, 80, seed, Label::Static, &|_, _| 1000.0);
    for observation in &mut observations {
        let smact = features(&observation.model().unwrap(), &observation.training()).unhindered();
        observation.counters = Some(Counters { utilisation: smact, engine: smact, smact, smocc: smact / 3.0, fp32: 0.0 });
    }
    observations
}

fn made_up_runs() -> Vec<SoloRun> {
    let run = |(place, observation): (usize, Observation)| {
        let smact = observation.counters.map(|counters| counters.smact);
        let measured = Solo {
            workload: format!("{}_bs{}", ["resnet18", "resnet50", "vgg16", "bert"][place % 4], observation.batch),
            gpus: 1,
            gpu_rank: 0,
            smact,
            smocc: smact.map(|smact| smact / 3.0),
            drama: smact.map(|smact| smact / 2.0),
            power_w: smact.map(|smact| 60.0 + 200.0 * smact),
        };
        SoloRun { measured, model: observation.model().unwrap(), training: observation.training() }
    };
    made_up(Family::Cnn, 9).into_iter().take(24).enumerate().map(run).collect()
}

#[test]
fn training_is_repeatable_and_learns() {
    let observations = [made_up(Family::Mlp, 1), made_up(Family::Cnn, 2)].concat();
    let solo = made_up_runs();
    let learned = train(&observations, &solo, 3);
    assert_ne!(learned, train(&observations, &solo, 4));
    let errors = evaluate(&observations, &solo, 3);
    assert_eq!((learned, errors.clone()), train_and_evaluate(&observations, &solo, 3));
    let kinds: Vec<_> = errors.iter().map(|error| (error.set, error.counter)).collect();
    let random = [Counter::Smact, Counter::Smocc];
    let expected: Vec<_> = [Set::Mlp, Set::Cnn].into_iter().flat_map(|set| random.map(|counter| (set, counter))).collect();
    assert_eq!(kinds, [expected, Counter::ALL.map(|counter| (Set::Solo, counter)).to_vec()].concat());
    for error in errors {
        assert!(error.mean_absolute_error < 0.6 * error.trivial, "{error:?}");
    }
}

#[test]
fn without_rows_every_value_is_possible() {
    let (learned, errors) = train_and_evaluate(&[], &[], 1);
    let answer = learned.estimate(&Features::default(), Family::Mlp);
    assert_eq!((answer.smact.low, answer.smact.high), (Fraction::ZERO, Fraction::ONE));
    assert!(errors.is_empty());
}

#[test]
fn names_of_workloads_contain_batch_and_model() {
    const HEADER: &str = "workload,gpus,gpu_rank,end_to_end_s,peak_mib,gpu_util_pct,smact,smocc,drama,power_w,energy_j\n";
    let read = |rows: &str| Solo::read(format!("{HEADER}{rows}").as_bytes());
    let rows =
        read("resnet50_imagenet_bs64,1,0,1,1,,0.5,0.2,0.1,200,\nunet_voc,1,0,1,1,,,,,,\nefficientnet_cifar100_bs128_20e,1,0,1,1,,,,,,\n")
            .unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.batch(), row.family(), row.summary())).collect();
    let file = |name: &str| Some(name.to_owned());
    let expected = [
        (Some(64), "resnet", file("resnet50_64.model")),
        (None, "unet", file("UNet.model")),
        (Some(128), "efficientnet", file("efficientNet_cifar100.model")),
    ];
    assert_eq!(told, expected);
    assert!(read("a,1,0,1,1,,1.5,,,,\n").unwrap_err().to_string().starts_with("line 2: "));
    assert!(read("a,1,0,1,1,,,,,-5,\n").unwrap_err().to_string().starts_with("line 2: "));
    assert!(read("a,many,0,1,1,,,,,,\n").is_err());
    assert!(runs(&rows, |_| None).is_empty());
}

/// The published measurements, in full.
fn measured() -> Result<(Vec<Observation>, Vec<SoloRun>), Missing> {
    let folder = published_data()?;
    let observations = [published("memory_mlp.csv")?, published("memory_cnn_random.csv")?].concat();
    let solo = Solo::read(std::fs::File::open(folder.join("solo_a100_40gb.csv")).unwrap()).unwrap();
    Ok((observations, runs(&solo, |file| std::fs::read(folder.join("summaries").join(file)).ok())))
}

/// What ships is what training gives, and no worse than stated. To make the weights again, name a file in `CARMA_WEIGHTS`.
#[test]
fn published_measurements_give_the_shipped_weights_and_errors() {
    let (observations, solo) = need!(measured());
    assert_eq!(solo.len(), 45);
    let (learned, errors) = train_and_evaluate(&observations, &solo, 1);
    for error in errors {
        eprintln!("{error:?}");
        let most = match (error.set, error.counter) {
            (Set::Mlp, Counter::Smact) => 0.02,
            (Set::Mlp, _) => 0.01,
            (Set::Cnn, Counter::Smact) => 0.04,
            (Set::Cnn, _) => 0.03,
            (Set::Solo, Counter::Smact) => 0.10,
            (Set::Solo, Counter::Smocc) => 0.08,
            (Set::Solo, Counter::Drama) => 0.06,
            (Set::Solo, Counter::Power) => 28.0,
        };
        assert!(error.mean_absolute_error < most && error.mean_absolute_error < 0.5 * error.trivial, "{error:?}");
    }
    if let Some(file) = std::env::var_os("CARMA_WEIGHTS") {
        std::fs::write(file, learned.write().unwrap()).unwrap();
    }
    assert_eq!(&learned, Learned::shipped());
}
