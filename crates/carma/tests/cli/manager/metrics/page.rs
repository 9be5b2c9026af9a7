//! The metrics page: access, counters across restarts, and its cost.

use carma_core::Outcome;
use serde_json::json;

use super::super::lab::until;
use super::super::up::ManagerProcess;
use super::{LISTEN, fetch, names, value};

#[test]
fn the_metrics_port_serves_metrics_only() {
    let up = ManagerProcess::new(None, LISTEN);
    let address = up.metrics_address();
    let (status, page) = fetch(&format!("http://{address}/metrics"));
    assert_eq!(status, 200);
    assert_eq!(value(&page, "carma_store_writable"), Some(1.0), "{page}");
    for path in ["/", "/v1/status", "/v1/jobs", "/index.html", "/metrics/"] {
        assert_eq!(fetch(&format!("http://{address}{path}")).0, 404, "{path}");
    }
    let from_api = up.client().metrics().unwrap();
    assert_eq!(names(&from_api), names(&page), "the API serves the same");
}

#[test]
fn counts_go_on_after_a_manager_is_killed() {
    let mut up = ManagerProcess::new(None, "");
    let job = up.submit(up.shell_job("true"));
    assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
    let failed = up.submit(up.shell_job("exit 3"));
    up.wait_until_done(failed);
    let counted = [
        ("carma_jobs_submitted_total", 2.0),
        ("carma_jobs_finished_total{outcome=\"succeeded\"}", 1.0),
        ("carma_attempts_ended_total{verdict=\"failed\"}", 1.0),
        ("carma_decisions_total{decision=\"launch\"}", 2.0),
        ("carma_attempt_run_seconds_count", 2.0),
        ("carma_job_wait_seconds_bucket{le=\"+Inf\"}", 2.0),
    ];
    let all_counted = |up: &mut ManagerProcess| {
        let page = up.client().metrics().unwrap();
        counted.iter().all(|(sample, count)| value(&page, sample) == Some(*count)).then_some(())
    };
    until(|| all_counted(&mut up));
    up.kill();
    up.start();
    assert!(all_counted(&mut up).is_some(), "{}", up.client().metrics().unwrap());
    assert_eq!(value(&up.client().metrics().unwrap(), "carma_jobs_finished_total{outcome=\"out_of_memory\"}"), Some(0.0));
}

#[test]
fn names_of_jobs_and_users_and_dcgms_names_can_be_left_out() {
    let configuration = "[manager.metrics]\njob_names = false\ndcgm_names = false\n";
    let up = ManagerProcess::new(Some(("1xA100-40GB", 60.0)), configuration);
    up.train("secret-project", 8000, "--seconds 100000");
    let page = until(|| up.client().metrics().ok().filter(|page| page.contains("carma_job_gpu_memory_bytes{")));
    assert!(page.contains("carma_job_gpu_memory_bytes{job_id=\"1\",attempt=\"1\",name=\"\",user=\"\",gpu=\"s0/gpu0\""), "{page}");
    assert!(!page.contains("secret-project") && !page.contains("DCGM_"), "{page}");
    assert!(
        value(&page, "carma_jobs{state=\"running\"}").unwrap() + value(&page, "carma_jobs{state=\"starting\"}").unwrap() > 0.5,
        "{page}"
    );
}

#[test]
fn metrics_of_many_gpus_and_jobs_are_fast() {
    const JOBS: u32 = 2000;
    let up = ManagerProcess::new(Some(("64xA100-40GB", 1.0)), "[manager.gpus]\nperiod = 5\n");
    let mut held = up.shell_job("true");
    held.schedule.hold = true;
    let submit = serde_json::from_value(json!({ "job": held, "array": (0..JOBS).collect::<Vec<_>>() })).unwrap();
    up.client().submit(&submit).unwrap();
    let page = until(|| up.client().metrics().ok().filter(|page| page.contains("carma_gpu_power_watts{gpu=\"s0/gpu63\"")));
    assert_eq!(value(&page, "carma_jobs{state=\"held\"}"), Some(f64::from(JOBS)));
    let begin = std::time::Instant::now();
    drop(up.client().metrics().unwrap());
    assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
}
