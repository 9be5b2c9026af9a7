//! A real Prometheus scrapes a manager whose jobs share a GPU, run out of memory and recover, and whose other GPU is lost at the end.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{Outcome, Verdict};
use carma_emu::fault::Fault;
use carma_testing::need;

use super::super::lab::{TIMEOUT, until};
use super::super::up::ManagerProcess;
use super::prometheus::{Prometheus, promtool};
use super::rules::dashboard_queries;
use super::{LISTEN, fetch, names, value};

#[test]
fn every_panel_has_data_and_a_lost_gpu_raises_an_alert() {
    // Three unknown jobs share a GPU whatever the forecast.
    let up = ManagerProcess::new(Some(("2xA100-40GB", 60.0)), &format!("{LISTEN}[forecast]\nslowdown = 10\ngain = 0\ndelay = 10\n"));
    let target = up.metrics_address();
    let prometheus = need!(Prometheus::scraping(&target));
    // An increase counts only from the first scrape on.
    until(|| (prometheus.numbers("up{job=\"carma\"}") == [1.0]).then_some(()));
    share_and_recover(&up);

    // The page is cached for about a second, so the first one may be older than the end of the last job.
    let page = until(|| {
        let (_, page) = fetch(&format!("http://{target}/metrics"));
        (value(&page, "carma_memory_peak_ratio_count{of=\"declared\"}") == Some(1.0)).then_some(page)
    });
    attributed(&page);
    described(&page);
    let checked = need!(promtool(&["check", "metrics"], Some(&page)));
    let complaints = String::from_utf8(checked.stderr).unwrap();
    // The names of dcgm-exporter are not ours to change.
    let ours: Vec<&str> = complaints.lines().filter(|line| !line.starts_with("DCGM_")).collect();
    assert!(ours.is_empty() && checked.stdout.is_empty(), "{complaints}");

    until(|| {
        let groups = prometheus.get("rules", &[]);
        let rules: Vec<_> = groups["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
        assert!(rules.len() > 15);
        assert!(rules.iter().all(|rule| rule["health"] != "err"), "{groups}");
        rules.iter().all(|rule| rule["health"] == "ok").then_some(())
    });
    let (mut empty, end) = (dashboard_queries(), Instant::now() + TIMEOUT);
    while !empty.is_empty() {
        empty.retain(|query| !prometheus.numbers(query).iter().any(|number| number.is_finite()));
        assert!(Instant::now() < end, "no data: {empty:#?}");
        thread::sleep(Duration::from_millis(100));
    }

    assert!(firing(&prometheus, "CarmaGpuLost").is_empty());
    up.machine.as_ref().unwrap().with(|state| Fault::Lost { gpu: 1 }.inject(state)).unwrap().unwrap();
    let lost = until(|| Some(firing(&prometheus, "CarmaGpuLost")).filter(|gpus| !gpus.is_empty()));
    assert_eq!(lost, ["s0/gpu1"]);
}

/// The documentation lists exactly the metrics of the page.
fn described(page: &str) {
    const DOCUMENT: &str = include_str!("../../../../../../docs/metrics.md");
    let words: BTreeSet<&str> = DOCUMENT.split('`').filter(|word| word.starts_with("carma_") || word.starts_with("process_")).collect();
    let served: BTreeSet<&str> = names(page).into_iter().filter(|name| !name.starts_with("DCGM_")).collect();
    // Patterns, and names of files, are no metrics. Emulated GPUs have no tensor-core activity, and there is no pool and no agent.
    let of_servers = |word: &str| ["carma_server_", "carma_pool_", "carma_pilots"].iter().any(|prefix| word.starts_with(prefix));
    let absent = |word: &&str| word.contains('.') || *word == "carma_gpu_tensor_active_ratio" || of_servers(word);
    let written: BTreeSet<&str> = words.into_iter().filter(|word| !absent(word)).collect();
    assert_eq!(written, served);
    assert!(names(page).iter().filter(|name| name.starts_with("DCGM_")).all(|name| DOCUMENT.contains(&format!("`{name}`"))));
}

/// The GPUs of an alert.
fn firing(prometheus: &Prometheus, alert: &str) -> Vec<String> {
    let alerts = prometheus.get("alerts", &[]);
    let firing =
        alerts["alerts"].as_array().unwrap().iter().filter(|entry| entry["labels"]["alertname"] == alert && entry["state"] == "firing");
    firing.map(|entry| entry["labels"]["gpu"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Two jobs share a GPU and continue. A third declares less memory than it needs, runs out of memory beside them, and recovers on the other GPU.
fn share_and_recover(up: &ManagerProcess) {
    let mut client = up.client();
    client.drain("1", true).unwrap();
    let shares = [up.train("large", 20_000, "--memory 19GiB --seconds 1000000"), up.train("small", 8_000, "--seconds 1000000")];
    let trains = |page: &str, job: carma_core::JobId| page.contains(&format!("carma_job_gpu_memory_bytes{{job_id=\"{}\"", job.0));
    until(|| client.metrics().ok().filter(|page| shares.iter().all(|job| trains(page, *job))));
    let greedy = up.train("greedy", 4_000, "--memory 30GiB --seconds 120");
    until(|| {
        let verdicts: Vec<_> = client.job(&greedy.0.to_string()).unwrap().attempts.into_iter().map(|attempt| attempt.verdict).collect();
        verdicts.contains(&Some(Verdict::OutOfMemory)).then_some(())
    });
    client.drain("1", false).unwrap();
    assert_eq!(up.wait_until_done(greedy).outcome(), Some(&Outcome::Succeeded));
}

/// Usage of a shared GPU is reported per job.
fn attributed(page: &str) {
    let of = |metric: &str, job: u32| {
        let line = page.lines().find(|line| line.starts_with(&format!("{metric}{{job_id=\"{job}\"")) && line.contains("gpu=\"s0/gpu0\""));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).unwrap_or_else(|| panic!("{metric} of {job}: {page}"))
    };
    let all = |metric: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("{metric}{{gpu=\"s0/gpu0\"")));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).unwrap()
    };
    assert!((of("carma_job_gpu_memory_bytes", 1) - 19.0 * 1_073_741_824.0).abs() < 1.0, "{page}");
    let memory = [1, 2].map(|job| of("carma_job_gpu_memory_bytes", job)).iter().sum::<f64>();
    assert!((memory - all("carma_gpu_memory_used_bytes")).abs() < 1.0, "{page}");
    assert!([1, 2].iter().all(|job| of("carma_job_gpu_energy_joules_total", *job) > 0.0), "{page}");
    let active = [1, 2].map(|job| of("carma_job_gpu_sm_active_ratio", job)).iter().sum::<f64>();
    assert!((active - all("carma_gpu_sm_active_ratio")).abs() < 0.02, "{page}");
    assert!(value(page, "carma_attempts_ended_total{verdict=\"out_of_memory\"}") >= Some(1.0), "{page}");
    assert!(value(page, "carma_requeues_total{reason=\"out_of_memory\"}") >= Some(1.0), "{page}");
    assert_eq!(value(page, "carma_memory_peak_ratio_count{of=\"declared\"}"), Some(1.0), "{page}");
}
