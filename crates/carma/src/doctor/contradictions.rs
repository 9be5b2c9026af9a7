//! Values of the configuration that are allowed one by one, but make no sense together or on this host. Pure.

use carma_core::{Config, MiB, Seconds, Watts};
use carma_format::count;
use carma_gpu::DeviceUuid;
use carma_manager::configuration::ManagerConfig;
use carma_manager::names_gpu;

use super::findings::{Finding, Health, finding};

/// The size of this host, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct HostSize {
    /// Memory of the host.
    pub(super) memory: Option<MiB>,
    /// Its GPUs; none where they are not known.
    pub(super) gpus: Vec<HostGpu>,
}

/// A GPU of this host.
#[derive(Debug, Clone)]
pub(crate) struct HostGpu {
    /// The driver's number of it.
    pub(crate) index: u32,
    pub(crate) uuid: DeviceUuid,
    pub(crate) memory: MiB,
    /// Its power without jobs.
    pub(crate) idle: Option<Watts>,
    /// The least and the most power limit that it accepts.
    pub(crate) power_limits: Option<(Watts, Watts)>,
}

impl HostGpu {
    fn is_in(&self, words: &[String]) -> bool {
        words.iter().any(|word| names_gpu(word, self.index, &self.uuid))
    }
}

/// Every contradiction.
pub(super) fn contradictions(rules: &Config, manager: &ManagerConfig, host: &HostSize) -> Vec<Finding> {
    let used: Vec<&HostGpu> = host.gpus.iter().filter(|gpu| !gpu.is_in(&manager.gpus.ignore)).collect();
    let names = [("ignore", &manager.gpus.ignore), ("mps", &manager.gpus.mps)];
    let one_by_one = [
        shares_without_fair_share(rules),
        jobs_above_quotas(rules, manager),
        logs_above_the_user_limit(manager),
        lease_shorter_than_a_restart(manager),
        samples_too_rare(rules, manager),
        time_slices_longer_than_jobs(rules, manager),
        host_memory_never_free(manager, host),
        floor_above_every_gpu(rules, &used),
        budget_below_idle(rules, &used),
        cap_out_of_range(rules, &used),
        ignored(manager, host),
    ];
    let unknown = names.into_iter().flat_map(|(key, words)| unknown_gpus(key, words, &host.gpus));
    one_by_one.into_iter().flatten().chain(unknown).collect()
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

/// A power budget that idle GPUs exceed.
fn budget_below_idle(rules: &Config, gpus: &[&HostGpu]) -> Option<Finding> {
    let budget = rules.power.budget?;
    let idle = Watts(gpus.iter().filter_map(|gpu| gpu.idle).map(|idle| idle.0).sum());
    let says = || {
        let gpus = count(gpus.len(), "idle GPU");
        format!("power.budget ({budget}) is not above what {gpus} of this server draw ({idle}, estimated): no job with a GPU ever starts")
    };
    (idle >= budget).then(|| finding(Health::Error, says(), Some("raise power.budget, then carma config reload")))
}

/// A power limit that the GPUs do not accept.
fn cap_out_of_range(rules: &Config, gpus: &[&HostGpu]) -> Option<Finding> {
    let cap = rules.power.cap?;
    let limits = gpus.iter().filter_map(|gpu| gpu.power_limits);
    let (least, most) = limits.reduce(|one, other| (Watts(one.0.0.min(other.0.0)), Watts(one.1.0.max(other.1.0))))?;
    let says = |set: Watts| format!("power.cap ({cap}) is not a limit that the GPUs accept ({least} to {most}): they get {set}");
    let fix = "give a limit in this range";
    let set = if cap.0 < least.0 { least } else { most };
    (cap.0 < least.0 || cap.0 > most.0).then(|| warning(says(set), fix))
}

/// Which GPUs are left alone.
fn ignored(manager: &ManagerConfig, host: &HostSize) -> Option<Finding> {
    let numbers: Vec<String> = host.gpus.iter().filter(|gpu| gpu.is_in(&manager.gpus.ignore)).map(|gpu| gpu.index.to_string()).collect();
    let what = if numbers.len() == 1 { "GPU" } else { "GPUs" };
    (!numbers.is_empty()).then(|| finding(Health::Note, format!("manager.gpus.ignore: {what} {} ignored", numbers.join(", ")), None))
}

/// Words for GPUs that this server does not have.
fn unknown_gpus<'a>(key: &'a str, words: &'a [String], gpus: &'a [HostGpu]) -> impl Iterator<Item = Finding> {
    let is_known = move |word: &str| word == "all" || gpus.iter().any(|gpu| names_gpu(word, gpu.index, &gpu.uuid));
    let unknown = words.iter().filter(move |word| !gpus.is_empty() && !is_known(word));
    unknown.map(move |word| {
        let says = format!("manager.gpus.{key} names {word:?}, and no GPU of this server has this number or UUID");
        warning(says, "carma gpus shows the numbers and UUIDs; correct it, then restart the manager")
    })
}

fn floor_above_every_gpu(rules: &Config, gpus: &[&HostGpu]) -> Option<Finding> {
    let (largest, floor) = (gpus.iter().map(|gpu| gpu.memory).max()?, rules.admission.floor);
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
        let gpu = |index: u32| HostGpu {
            index,
            uuid: format!("GPU-{index}abc").parse().unwrap(),
            memory: MiB(24_000),
            idle: Some(Watts(52.0)),
            power_limits: Some((Watts(100.0), Watts(400.0))),
        };
        let host = HostSize { memory: Some(MiB(64_000)), gpus: vec![gpu(0), gpu(1)] };
        contradictions(&read.rules.check().unwrap(), &read.manager, &host).into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn the_defaults_contradict_nothing() {
        assert_eq!(found(""), <[String; 0]>::default());
        assert_eq!(found("[queue]\nfair_share = true\nshares = [{ uid = 0, share = 2 }]\n"), <[String; 0]>::default());
    }

    #[test]
    fn power_and_names_of_gpus_must_suit_the_server() {
        let text = "[power]\nbudget = 100\ncap = 20\n[manager.gpus]\nignore = [\"17\", \"GPU-nonsense\"]\nmps = [\"9\", \"all\"]\n";
        insta::assert_snapshot!(found(text).join("\n"));
        assert_eq!(found("[power]\nbudget = 105\ncap = 100\n[manager.gpus]\nmps = [\"GPU-1a\", \"0\"]\n"), <[String; 0]>::default());
        assert_eq!(found("[manager.gpus]\nignore = [\"0\"]\n[power]\nbudget = 60\n"), ["manager.gpus.ignore: GPU 0 ignored"]);
    }

    #[test]
    fn every_contradiction_names_its_keys() {
        let text = "[queue]\nshares = [{ uid = 0, share = 2 }]\n[quotas]\ngpus = 2\n[slots]\nlength = 7200\n[window]\nstale_after = 10\n\
                    [admission]\nfloor = 30000\n[manager.limits]\ngpus_per_job = 4\nseconds_per_job = 3600\n[manager.logs]\nsize = 200\n\
                    size_per_user = 100\n[manager.agents]\nlease = 30\n[manager.gpus]\nperiod = 20\n[manager.host]\nmemory = 64000\n";
        insta::assert_snapshot!(found(text).join("\n"));
    }
}
