//! A small file of each format, written by hand.

use std::fmt::Write as _;
use std::io::Write as _;

use carma_core::MiB;
use carma_sim::trace::{RadTask, ReadLimits};
use carma_sim::{Catalogue, Trace};
use carma_testing::{need, published_data};

use super::{parse, read, sample_file};

/// A job a line.
fn written(trace: &Trace) -> String {
    let catalogue = Catalogue::shipped();
    let mut text = String::new();
    for job in &trace.jobs {
        let workload = job.workload.map_or("-", |id| &catalogue.get(id).name);
        let duration = job.duration.map_or("-".to_owned(), |duration| duration.to_string());
        let owner = job.owner.as_deref().unwrap_or("-");
        writeln!(text, "{} | {} | {} GPUs | {workload} | {duration} | {owner}", job.name, job.submitted, job.gpus).unwrap();
    }
    for (why, jobs) in &trace.skipped {
        writeln!(text, "{jobs} {why}").unwrap();
    }
    text
}

#[test]
fn every_format_is_recognised_and_read() {
    let files = ["carma.sh", "Xception2.rad", "submissions.csv", "philly_log.json", "philly_table.csv"];
    for file in files.into_iter().chain(["helios.csv", "helios_vc.csv", "alibaba_2020.csv", "alibaba_2023.csv"]) {
        let trace = read(file);
        insta::assert_snapshot!(file, written(&trace));
        // Content tells: without its extension, and packed, the file is the same trace. Task files are named after their workload.
        let bytes = std::fs::read(sample_file(file)).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&bytes).unwrap();
        assert_eq!(parse(&format!("{file}.gz"), packed.finish().unwrap()).unwrap(), trace, "{file}");
        if file != "Xception2.rad" {
            assert_eq!(parse("trace", &bytes).unwrap(), trace, "{file}");
            let marked = ["\u{feff}".as_bytes(), &bytes].concat();
            let lines_of_windows = String::from_utf8(marked).unwrap().replace('\n', "\r\n");
            if file != "carma.sh" {
                assert_eq!(parse("trace", lines_of_windows).unwrap(), trace, "{file}");
            }
        }
    }
}

#[test]
fn alibaba_headers_are_optional() {
    let rows = std::fs::read_to_string(sample_file("alibaba_2020.csv")).unwrap();
    let header = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
    assert_eq!(parse("pai_task_table.csv", header.to_owned() + &rows).unwrap(), read("alibaba_2020.csv"));
}

#[test]
fn a_task_file_has_needs_by_source() {
    let text = std::fs::read_to_string(sample_file("Xception2.rad")).unwrap();
    let task = RadTask::parse("Xception2.rad", &text).unwrap();
    assert_eq!((task.comment.as_str(), task.environment.as_str(), task.mode.as_str()), ("Xception on ImageNet", "torch", "training"));
    assert_eq!((task.needs.measured, task.needs.horus), (Some(MiB(10_978)), Some(MiB(12_346))), "needs are rounded up");
    assert_eq!((task.needs.fake_tensor, task.needs.gpu_mem_net), (None, None), "40000 is unknown, and so is what is not there");
}

/// Published traces, where their folder is given.
#[test]
fn published_traces_are_read() {
    let folder = need!(published_data());
    let files = [("carma_mix90.csv", 90), ("carma_heavy60.csv", 60), ("carma_t1_60.csv", 60), ("carma_t2_60.csv", 60)];
    for (file, jobs) in files.into_iter().chain([("philly60_jobs.csv", 60), ("other/philly_82k.csv.gz", 82_247)]) {
        let trace = Trace::read(&folder.join(file), &Catalogue::shipped(), &ReadLimits::default()).unwrap();
        assert_eq!(trace.jobs.len(), jobs, "{file}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
    }
}
