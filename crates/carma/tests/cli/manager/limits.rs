//! Limits of a job that the kernel enforces, from the command line to the verdict.

use carma_core::Outcome;
use carma_manager::supervise::enforceable;
use carma_testing::{Missing, need, skip};

use super::security::{ADA, SharedManager};

#[test]
fn a_job_over_its_host_memory_ends_with_the_reason_and_the_status_lists_what_is_enforced() {
    let manager = need!(SharedManager::start());
    if !enforceable().memory {
        skip!(Missing::ControlGroups);
    }
    let job = manager.submits(ADA, &["--host-mem", "64M", "--", "tail", "/dev/zero"]);
    let ended = manager.0.wait_until_done(job);
    assert_eq!(ended.outcome(), Some(&Outcome::HostOutOfMemory));
    let shown = manager.run_as(ADA, &["show", &job.0.to_string()]);
    let shown = String::from_utf8_lossy(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("exceeded its limit of host memory (--host-mem)"), "{shown}");
    let missing: Vec<String> = enforceable().missing().into_iter().map(str::to_owned).collect();
    assert_eq!(manager.0.client().status().unwrap().not_enforced, missing);
}
