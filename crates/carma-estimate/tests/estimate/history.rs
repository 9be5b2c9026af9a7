//! Runs that are remembered: signatures, what is recalled, and tables of runs, hostile ones too.

use std::path::Path;

use carma_core::{Fraction, Interference, Metric, MiB, Seconds, Utilisation, Watts};
use carma_estimate::history::{History, MOST_RUNS, Measured, RunEnd, Signature};
use proptest::prelude::*;

/// Tables outlive versions: were this to change, everything learned so far would be forgotten.
#[test]
fn signatures_stay_the_same() {
    let command = ["python".to_owned(), "train.py".to_owned()];
    assert_eq!(Signature::of_command(&command, Path::new("/home/ann")).to_string(), "5a4dc5029560bbce48c4502cdde7309f");
}

#[test]
fn commands_are_compared_word_by_word() {
    let of = |words: &[&str], directory: &str| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Signature::of_command(&words, Path::new(directory))
    };
    let mut all =
        vec![of(&["a", "b"], "c"), of(&["ab"], "c"), of(&["b"], "ca"), of(&["b", "a"], "c"), of(&["a", "b", ""], "c"), of(&[], "")];
    all.extend([of(&["a", "b"], "c").on_gpus(1), of(&["a", "b"], "c").on_gpus(2)]);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

fn job() -> Signature {
    Signature::of_command(&["job".to_owned()], Path::new("."))
}

fn run(memory: u64, smact: f64, seconds: f64) -> Measured {
    Measured {
        memory: MiB(memory),
        utilisation: Utilisation::of([(Metric::Smact, smact)]),
        seconds: Some(Seconds::new(seconds).unwrap()),
        ..Measured::default()
    }
}

#[test]
fn the_highest_peak_and_medians_are_recalled() {
    let mut history = History::default();
    for run in [run(9000, 0.5, 10.0), run(10_000, 0.9, 30.0), run(8000, 0.6, 20.0), run(8000, 0.7, 21.0)] {
        history.record(job(), run);
    }
    let recalled = history.recall(&job()).unwrap();
    assert_eq!((recalled.memory, recalled.memory_upper, recalled.runs), (MiB(10_000), MiB(10_250), 4));
    assert!((recalled.utilisation[Metric::Smact].unwrap().get() - 0.65).abs() < 1e-12);
    assert_eq!(recalled.duration, Some(Seconds::new(20.5).unwrap()));
    assert_eq!((recalled.utilisation[Metric::Drama], recalled.watts), (None, None));
    assert_eq!(history.recall(&job().on_gpus(2)), None);
}

#[test]
fn learned_interference_is_read_and_missing_in_old_tables() {
    let mut history = History::default();
    for factor in [1.0, 2.0, 4.0] {
        let interference = Some(Interference { pressure: factor, sensitivity: 1.0 / factor.min(2.0) });
        history.record(job(), Measured { interference, ..run(1, 0.1, 1.0) });
    }
    history.record(job(), run(1, 0.1, 1.0));
    assert_eq!(history.recall(&job()).unwrap().interference, Some(Interference { pressure: 2.0, sensitivity: 0.5 }));
    let table = write(&history);
    let old: String = table.lines().map(|line| line.rsplitn(4, ',').nth(3).unwrap().to_owned() + "\n").collect();
    let recalled = read(&old).unwrap().recall(&job()).unwrap();
    assert_eq!((recalled.runs, recalled.interference), (4, None));
}

#[test]
fn a_run_that_ran_out_of_memory_is_a_lower_bound_until_the_job_completes() {
    let out_of_memory = |memory| Measured { end: RunEnd::OutOfMemory, ..run(memory, 0.5, 1.0) };
    let mut history = History::default();
    history.record(job(), out_of_memory(30_000));
    history.record(job(), out_of_memory(20_000));
    assert_eq!((history.recall(&job()), history.ran_out_with(&job())), (None, Some(MiB(30_000))));
    history.record(job(), run(9_000, 0.5, 1.0));
    let recalled = history.recall(&job()).unwrap();
    assert_eq!((recalled.memory, recalled.runs, history.ran_out_with(&job())), (MiB(9_000), 1, None));
    history.record(job(), out_of_memory(12_000));
    assert_eq!(history.ran_out_with(&job()), Some(MiB(12_000)), "it may have changed since it completed");
    assert_eq!(read(&write(&history)).unwrap(), history);
}

#[test]
fn bounds_tighten_with_runs_and_old_runs_expire() {
    let mut history = History::default();
    history.record(job(), run(20_000, 0.5, 1.0));
    let mut last = MiB(u64::MAX);
    for _ in 0..MOST_RUNS - 1 {
        let recalled = history.recall(&job()).unwrap();
        assert!(recalled.memory_upper < last && recalled.memory_upper > recalled.memory);
        last = recalled.memory_upper;
        history.record(job(), run(5000, 0.5, 1.0));
    }
    assert_eq!(history.recall(&job()).unwrap().memory, MiB(20_000));
    history.record(job(), run(5000, 0.5, 1.0));
    let recalled = history.recall(&job()).unwrap();
    assert_eq!((recalled.memory, recalled.runs), (MiB(5000), MOST_RUNS));
}

#[test]
fn an_invalid_power_is_ignored() {
    let mut history = History::default();
    for watts in [f64::NAN, -1.0, f64::INFINITY] {
        history.record(job(), Measured { watts: Some(Watts(watts)), ..run(1, 0.1, 1.0) });
    }
    assert_eq!(history.recall(&job()).unwrap().watts, None);
    assert_eq!(read(&write(&history)).unwrap(), history);
}

fn write(history: &History) -> String {
    let mut table = Vec::new();
    history.write(&mut table).unwrap();
    String::from_utf8(table).unwrap()
}

fn read(table: &str) -> Result<History, String> {
    History::read(table.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn hostile_tables_are_refused_with_their_line() {
    const HEADER: &str = "signature,memory_mib,smact,smocc,drama,watts,seconds\n";
    const ROW: &str = "0123456789abcdef0123456789abcdef,1000,0.5,0.2,0.1,200,60\n";
    assert_ne!(read(&format!("{HEADER}{ROW}")).unwrap(), History::default());
    assert_eq!(read(HEADER).unwrap(), History::default());
    for (from, to) in [
        ("0123", "01xy"),
        ("0123", "0"),
        ("0123", "\u{e4}\u{e4}"),
        (",1000,", ",-1,"),
        (",1000,", ",1e3,"),
        (",1000,", ",,"),
        (",1000,", ",18446744073709551615,"),
        (",0.5,", ",1.5,"),
        (",0.2,", ",NaN,"),
        (",0.1,", ",inf,"),
        (",200,", ",-200,"),
        (",60", ",-60"),
        (",60", ",1e300"),
        (",60", ",soon"),
        (",60", ",60,9,1"),
        (",60", ",60,1,much"),
        (",60", ",60,1,1,crashed"),
    ] {
        let error = read(&format!("{HEADER}{ROW}{}", ROW.replacen(from, to, 1))).unwrap_err();
        assert!(error.starts_with("line 3: "), "{to}: {error}");
    }
    assert!(read("").unwrap_err().starts_with("line 1: "));
    assert!(read("a,b\n").unwrap_err().contains("\"a,b\""));
    assert!(read(&format!("{HEADER}one,two\n")).is_err());
    assert!(History::read(&b"signature,\xff\n"[..]).is_err());
}

prop_compose! {
    fn any_run()(
        memory in 0_u64..1 << 30,
        shares in proptest::array::uniform3(proptest::option::of(0.0..=1.0_f64)),
        watts in proptest::option::of(0.0..1e6_f64),
        milliseconds in proptest::option::of(0_u64..1 << 40),
        factors in proptest::option::of((0.5..=4.0_f64, 0.5..=4.0_f64)),
        end in proptest::sample::select(vec![RunEnd::Completed, RunEnd::OutOfMemory]),
    ) -> Measured {
        let metrics = [Metric::Smact, Metric::Smocc, Metric::Drama].into_iter().zip(shares);
        let utilisation = metrics.fold(Utilisation::NONE, |all, (metric, share)| all.with(metric, share.map(Fraction::clamped)));
        let seconds = milliseconds.map(|span| Seconds::new(span as f64 / 1000.0).unwrap());
        let interference = factors.map(|(pressure, sensitivity)| Interference { pressure, sensitivity });
        Measured { memory: MiB(memory), utilisation, watts: watts.map(Watts), seconds, interference, end }
    }
}

proptest! {
    #[test]
    fn written_data_reads_back(runs in proptest::collection::vec((0_u64..8, any_run()), 0..100)) {
        let mut history = History::default();
        for (which, run) in runs {
            history.record(job().on_gpus(which), run);
        }
        prop_assert_eq!(read(&write(&history)).map_err(TestCaseError::fail)?, history);
    }

    #[test]
    fn no_input_causes_a_panic(table in "(signature,memory_mib,smact,smocc,drama,watts,seconds\n)?([0-9a-f]{32},[0-9]{1,25},[-0-9.eE,\"\n]{0,40}|\\PC{0,40})") {
        let _ = read(&table);
    }

    #[test]
    fn a_bound_is_never_below_any_run(runs in proptest::collection::vec(any_run(), 1..80)) {
        let mut history = History::default();
        for run in &runs {
            history.record(job(), *run);
        }
        let kept: Vec<&Measured> =
            runs[runs.len().saturating_sub(MOST_RUNS)..].iter().filter(|run| run.end == RunEnd::Completed).collect();
        prop_assume!(!kept.is_empty());
        let recalled = history.recall(&job()).unwrap();
        prop_assert!(kept.iter().all(|run| run.memory <= recalled.memory && run.memory < recalled.memory_upper));
    }
}
