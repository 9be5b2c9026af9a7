//! Values of the configuration that are allowed one by one, but make no sense together or on this host. Pure.

use carma_core::{Config, MiB, Seconds};
use carma_manager::configuration::ManagerConfig;

use super::findings::{Finding, Health, finding};

/// The size of this host, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostSize {
    /// Memory of the host.
    pub(super) memory: Option<MiB>,
    /// Memory of its largest GPU.
    pub(super) gpu_memory: Option<MiB>,
}

/// Every contradiction.
pub(super) fn contradictions(rules: &Config, manager: &ManagerConfig, host: &HostSize) -> Vec<Finding> {
    [
        shares_without_fair_share(rules),
        jobs_above_quotas(rules, manager),
        logs_above_the_user_limit(manager),
        lease_shorter_than_a_restart(manager),
        samples_too_rare(rules, manager),
        time_slices_longer_than_jobs(rules, manager),
        host_memory_never_free(manager, host),
        floor_above_every_gpu(rules, host),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn warning(says: String, fix: &str) -> Finding {
    finding(Health::Warning, says, Some(fix))
}

fn shares_without_fair_share(rules: &Config) -> Option<Finding> {
    let given = !rules.queue.shares.users.is_empty() || !rules.queue.shares.groups.is_empty();
    let says = || "queue.shares has no effect: queue.fair_share is off".to_owned();
    (given && !rules.queue.fair_share).then(|| warning(says(), "set queue.fair_share = true, or remove queue.shares"))
}

/// Jobs that the manager accepts by its limits, and that a quota refuses.
fn jobs_above_quotas(rules: &Config, manager: &ManagerConfig) -> Option<Finding> {
    let (limits, quotas) = (&manager.limits, &rules.quotas);
    let above = |key: &str, quota: &str| {
        let says = format!("manager.limits.{key} is above quotas.{quota}: jobs between the two are always refused");
        warning(says, "raise the quota, or lower the limit")
    };
    let gpus = limits.gpus_per_job.zip(quotas.gpus).filter(|(limit, quota)| limit > quota).map(|_| above("gpus_per_job", "gpus"));
    let memory = limits.memory_per_job.zip(quotas.memory).filter(|(limit, quota)| limit > quota);
    gpus.or_else(|| memory.map(|_| above("memory_per_job", "memory")))
}

fn logs_above_the_user_limit(manager: &ManagerConfig) -> Option<Finding> {
    let logs = &manager.logs;
    let says = || {
        format!("manager.logs.size ({}) is above manager.logs.size_per_user ({}): one job takes all of it", logs.size, logs.size_per_user)
    };
    (logs.size > logs.size_per_user).then(|| warning(says(), "raise manager.logs.size_per_user"))
}

/// Agents that end their jobs before a stuck manager is restarted.
fn lease_shorter_than_a_restart(manager: &ManagerConfig) -> Option<Finding> {
    let watchdog = manager.watchdog_seconds.filter(|watchdog| manager.agents.lease <= *watchdog)?;
    let lease = manager.agents.lease;
    let says = format!(
        "manager.agents.lease ({lease}) is not above manager.watchdog_seconds ({watchdog}): agents end their jobs before a stuck manager is restarted"
    );
    Some(warning(says, "raise the lease, or lower watchdog_seconds"))
}

fn samples_too_rare(rules: &Config, manager: &ManagerConfig) -> Option<Finding> {
    let (period, stale): (Seconds, Seconds) = (manager.gpus.period, rules.window.stale_after);
    let says = || format!("manager.gpus.period ({period}) is not below window.stale_after ({stale}): GPUs get no jobs between two samples");
    (period >= stale).then(|| finding(Health::Error, says(), Some("lower the period")))
}

fn time_slices_longer_than_jobs(rules: &Config, manager: &ManagerConfig) -> Option<Finding> {
    let (slice, limit) = rules.time_slices.length.zip(manager.limits.seconds_per_job)?;
    let says = || format!("time_slices.length ({slice}) is not below manager.limits.seconds_per_job ({limit}): no job is ever preempted");
    (slice >= limit).then(|| warning(says(), "shorten time_slices.length"))
}

fn host_memory_never_free(manager: &ManagerConfig, host: &HostSize) -> Option<Finding> {
    let (total, least) = (host.memory?, manager.host.memory);
    let says = || format!("manager.host.memory ({least}) is more than this host has ({total}): no job ever starts");
    (least >= total).then(|| finding(Health::Error, says(), Some("lower manager.host.memory")))
}

fn floor_above_every_gpu(rules: &Config, host: &HostSize) -> Option<Finding> {
    let (largest, floor) = (host.gpu_memory?, rules.admission.floor);
    let needed = floor + rules.admission.guard_of(largest);
    let says = || {
        format!("admission.floor and guard ({needed}) are more than the largest GPU has ({largest}): jobs without an estimate never start")
    };
    (needed > largest).then(|| warning(says(), "lower admission.floor"))
}

#[cfg(test)]
mod tests {
    use carma_manager::configuration::Configuration;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        let read = Configuration::parse(text).unwrap();
        let host = HostSize { memory: Some(MiB(64_000)), gpu_memory: Some(MiB(24_000)) };
        contradictions(&read.rules.check().unwrap(), &read.manager, &host).into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn the_defaults_contradict_nothing() {
        assert_eq!(found(""), <[String; 0]>::default());
        assert_eq!(found("[queue]\nfair_share = true\nshares = [{ uid = 0, share = 2 }]\n"), <[String; 0]>::default());
    }

    #[test]
    fn every_contradiction_names_its_keys() {
        let text = "[queue]\nshares = [{ uid = 0, share = 2 }]\n[quotas]\ngpus = 2\n[slots]\nlength = 7200\n[window]\nstale_after = 10\n\
                    [admission]\nfloor = 30000\n[manager.limits]\ngpus_per_job = 4\nseconds_per_job = 3600\n[manager.logs]\nsize = 200\n\
                    size_per_user = 100\n[manager.agents]\nlease = 30\n[manager.gpus]\nperiod = 20\n[manager.host]\nmemory = 64000\n";
        insta::assert_snapshot!(found(text).join("\n"));
    }
}
