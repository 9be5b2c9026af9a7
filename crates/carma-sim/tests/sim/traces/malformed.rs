//! Errors name file, line, value and the remedy.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::{CATALOGUE, parse, sample_file};

#[test]
fn malformed_traces_are_refused_with_line_and_reason() {
    let cases: [(&str, &[u8]); 39] = [
        ("empty.csv", b""),
        ("comments.csv", b"# nothing\n\n# here\n"),
        ("header_only.csv", b"submit_time_s,task\n"),
        ("letter.txt", b"Dear Sir or Madam,\n"),
        ("word.txt", b"hello\n"),
        ("other_table.csv", b"model,minutes\nresnet,3\n"),
        ("no_time.csv", b"task,gpus\nresnet,1\n"),
        ("no_task.csv", b"# made by hand\narrival_s,gpus\n0,1\n"),
        ("bad_number.csv", b"submit_time_s,task\n0,resnet\nsoon,resnet\n"),
        ("negative.csv", b"submit_time_s,task\n-5,resnet\n"),
        ("not_a_number.csv", b"submit_time_s,task\nNaN,resnet\n"),
        ("endless.csv", b"submit_time_s,task\ninf,resnet\n"),
        ("missing_time.csv", b"submit_time_s,task\n,resnet\n"),
        ("mixed.csv", b"submit_time_s,task\n0,resnet\n2017-10-09 07:01:55,resnet\n"),
        ("misspelt.csv", b"submit_time_s,task\n0,resnet50_imagnet\n"),
        ("unknown.csv", b"submit_time_s,task\n0,alexnet\n"),
        ("no_gpus.csv", b"submit_time_s,task,gpus\n0,resnet,0\n"),
        ("half_a_gpu.csv", b"submit_time_s,task,gpus\n0,resnet,0.5\n"),
        ("nothing_known.csv", b"submit_time_s,task,gpus\n0,,1\n"),
        ("no_duration.csv", b"submit_time_s,task,gpus,duration\n0,resnet,1,0\n"),
        ("open_quote.csv", b"submit_time_s,task\n0,\"resnet\n1,resnet\n"),
        ("not_text.csv", b"submit_time_s,task\n0,resnet\n1,\xff\xfe\n"),
        ("bad_date.csv", b"timestamp,duration,num_gpus\n2017-02-30 00:00:00,1,1\n"),
        ("negative_duration.csv", b"timestamp,duration,num_gpus\n2017-02-20 00:00:00,-1,1\n"),
        ("all_skipped.csv", b"timestamp,duration,num_gpus\n2017-02-20 00:00:00,1,0\n"),
        ("backwards.csv", b"name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\np,1,1000,5,6,7\n"),
        ("percent.csv", b"j,worker,1.0,Terminated,1,2,600,29,-50,MISC\n"),
        ("sleep.sh", b"#!/bin/sh\nsleep a while\n"),
        ("sleep_back.sh", b"sleep -3\n./submit.sh resnet.rad\n"),
        ("loop.sh", b"#!/bin/sh\nfor i in 1 2 3\n"),
        ("loop_over_tasks.sh", b"for task in resnet vgg; do\n./submit.sh $task\ndone\n"),
        ("task.sh", b"sleep 1\n./submit.sh tasks/resnt.rad\n"),
        ("short.rad", b"# a\nconda activate torch\npython a.py\n"),
        ("environment.rad", b"# a\nsource activate torch\n"),
        ("batch.rad", b"# a\nconda activate e\npython a.py\na.model\ndata\nmany\ntraining\n1\n"),
        ("need.rad", b"# a\nconda activate e\npython a.py\na.model\ndata\n8\ntraining\n1\n-7\n"),
        ("cut_off.json", b"[\n{\"jobid\": \"a\",\n"),
        ("form.json", b"[\n{\"jobid\": 7}]\n"),
        ("backwards.json", b"[{\"jobid\":\"a\",\"submitted_time\":\"2017-10-09 07:00:00\",\n\"attempts\":[{\"start_time\":\"2017-10-09 07:00:00\",\"end_time\":\"2017-10-08 07:00:00\"}]}\n]"),
    ];
    let mut errors = String::new();
    for (name, bytes) in cases {
        let error = parse(name, bytes).map(|trace| panic!("{name}: {trace:?}")).unwrap_err();
        writeln!(errors, "{error}").unwrap();
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn a_missing_file_is_reported() {
    let catalogue = carma_sim::Catalogue::shipped();
    let limits = carma_sim::trace::ReadLimits::default();
    let error = carma_sim::Trace::read(std::path::Path::new("/nonexistent.csv"), &catalogue, &limits).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent.csv: cannot be read: "), "{error}");
}

proptest! {
    /// Any damaged file is read or refused, and jobs that are read are ordered.
    #[test]
    fn damaged_files_cause_no_panic(file in 0_usize..9, at: prop::sample::Index, cut in 0_usize..40, put in "[0-9,.:\"{}\\[\\]\n -]{0,6}") {
        let names = ["carma.sh", "Xception2.rad", "submissions.csv", "philly_log.json", "philly_table.csv", "helios.csv"];
        let name = names.into_iter().chain(["helios_vc.csv", "alibaba_2020.csv", "alibaba_2023.csv"]).nth(file).unwrap();
        let mut bytes = std::fs::read(sample_file(name)).unwrap();
        let from = at.index(bytes.len());
        bytes.splice(from..(from + cut).min(bytes.len()), put.into_bytes());
        if let Ok(trace) = parse(name, bytes) {
            prop_assert!(trace.jobs.is_sorted_by_key(|job| job.submitted) && trace.jobs.iter().all(|job| job.gpus > 0));
            let analysis = carma_sim::trace::Analysis::of(&trace, &CATALOGUE);
            prop_assert_eq!(analysis.jobs, trace.jobs.len());
            prop_assert!(!analysis.to_string().is_empty());
        }
    }
}
