//! Tools make of a trace what they say, and the same again from the same seed.

use carma_core::Seconds;
use carma_sim::trace::{self, Analysis, DurationRule, Generation, WeightClass, Window};
use carma_sim::{Catalogue, Trace, TraceJob};
use proptest::prelude::*;

use super::{CATALOGUE, parse, read};

fn csv(trace: &Trace, comments: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write_csv(&CATALOGUE, comments, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_mapped_trace_is_read_back_as_it_was_written() {
    let catalogue = Catalogue::shipped();
    for file in ["philly_log.json", "helios.csv", "alibaba_2020.csv", "submissions.csv"] {
        for durations in [DurationRule::Own, DurationRule::Workload] {
            let mapped = trace::map(&read(file), &catalogue, 3, durations);
            assert!(mapped.jobs.iter().all(|job| job.workload.is_some()));
            let written = csv(&mapped, &["from a file\nof two lines".to_owned()]);
            assert!(written.starts_with(b"# from a file\n# of two lines\nsubmit_time_s,task,"));
            assert_eq!(parse("mapped.csv", written).unwrap().jobs, mapped.jobs, "{file}");
        }
    }
}

#[test]
fn a_published_mix_is_reproduced_exactly() {
    let catalogue = Catalogue::shipped();
    let wanted = Generation { mix: "65/27/8".parse().unwrap(), jobs: 90, mean_gap: Seconds::from_secs(120), seed: 1 };
    let trace = trace::generate(&wanted, &catalogue).unwrap();
    let count = |class| {
        let of_class = |job: &&TraceJob| job.workload.is_some_and(|id| WeightClass::of(catalogue.get(id)) == class);
        trace.jobs.iter().filter(of_class).count()
    };
    assert_eq!([WeightClass::Light, WeightClass::Medium, WeightClass::Heavy].map(count), [59, 24, 7]);
    assert_eq!(trace, trace::generate(&wanted, &catalogue).unwrap());
    // The first lines of it, so that a change of the generator does not go unseen.
    let text = String::from_utf8(csv(&trace, &[])).unwrap();
    insta::assert_snapshot!(text.lines().take(6).collect::<Vec<_>>().join("\n"));
    let many = Generation { jobs: 10_000, ..wanted };
    let gap = Analysis::of(&trace::generate(&many, &catalogue).unwrap(), &catalogue).arrivals;
    assert!((gap.mean_gap_s - 120.0).abs() < 5.0 && (gap.burstiness.unwrap() - 1.0).abs() < 0.05, "{gap:?}");
}

#[test]
fn a_mix_needs_workloads_to_choose_from() {
    let wanted = Generation { mix: "0/83/17".parse().unwrap(), jobs: 6, mean_gap: Seconds::ZERO, seed: 1 };
    let error = trace::generate(&wanted, &Catalogue::default()).unwrap_err();
    assert_eq!(error.to_string(), "the catalogue has no medium workload");
}

#[test]
fn an_analysis_fits_the_terminal() {
    let analysis = Analysis::of(&read("submissions.csv"), &CATALOGUE);
    insta::assert_snapshot!("analysis", analysis.to_string());
    insta::assert_snapshot!("analysis-json", serde_json::to_string_pretty(&analysis).unwrap());
    let log = Analysis::of(&read("alibaba_2023.csv"), &CATALOGUE).to_string();
    insta::assert_snapshot!("analysis-of-a-log", log);
    assert_eq!(log.lines().find(|line| line.chars().count() > 80), None, "too wide");
}

#[test]
fn a_tiny_trace_can_be_analysed() {
    let catalogue = Catalogue::shipped();
    let nothing = Analysis::of(&Trace::default(), &catalogue);
    assert_eq!((nothing.jobs, nothing.durations.is_none(), nothing.arrivals.per_hour), (0, true, None));
    let one = Analysis::of(&read("Xception2.rad"), &catalogue);
    assert_eq!((one.jobs, one.arrivals.hours.counts.as_slice()), (1, [1].as_slice()));
    assert!(!nothing.to_string().is_empty() && !one.to_string().is_empty());
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let job = (0_u64..100_000, 1_u32..9, 1_u64..10_000);
    proptest::collection::vec(job, 0..60).prop_map(|mut jobs| {
        jobs.sort_unstable();
        let made = |(place, (at, gpus, time)): (usize, (u64, u32, u64))| TraceJob {
            name: place.to_string(),
            submitted: Seconds::from_secs(at),
            gpus,
            workload: None,
            duration: Some(Seconds::from_secs(time)),
            owner: None,
        };
        Trace { jobs: jobs.into_iter().enumerate().map(made).collect(), ..Trace::default() }
    })
}

proptest! {
    #[test]
    fn a_sample_is_a_part_in_the_same_order(trace in any_trace(), wanted in 0_usize..80, seed: u64, from in 0_u64..50_000) {
        let window = Window { from: Seconds::from_secs(from), to: Some(Seconds::from_secs(from + 40_000)) };
        let sampled = trace::sample(&trace, window, Some(wanted), seed);
        let inside = |at: f64| at >= from as f64 && at < (from + 40_000) as f64;
        let there = trace.jobs.iter().filter(|job| inside(job.submitted.get())).count();
        prop_assert_eq!(sampled.jobs.len(), wanted.min(there));
        let mut rest = trace.jobs.iter();
        for job in &sampled.jobs {
            let original = TraceJob { submitted: job.submitted + window.from, ..job.clone() };
            prop_assert!(rest.any(|other| *other == original), "{} is not where it was", job.name);
        }
        prop_assert_eq!(sampled, trace::sample(&trace, window, Some(wanted), seed));
    }

    #[test]
    fn written_data_reads_back(trace in any_trace(), seed: u64) {
        prop_assume!(!trace.jobs.is_empty());
        let mapped = trace::map(&trace, &CATALOGUE, seed, DurationRule::Own);
        prop_assert_eq!(&parse("a.csv", csv(&mapped, &[])).unwrap().jobs, &mapped.jobs);
        prop_assert_eq!(&parse("a.csv", csv(&trace, &[])).unwrap().jobs, &trace.jobs);
    }
}
