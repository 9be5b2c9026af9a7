//! `[manager]`: the keys of the manager itself. The simulator does without them.

use std::path::PathBuf;

use carma_core::{Checker, Fraction, MiB, Seconds, ZeroIsNone, choice, section};

use super::address::Address;
use crate::host;
use crate::watchdog::SHORTEST_LIMIT;

section! {
    /// Settings of the manager itself.
    ManagerSettings => ManagerConfig, checked by watchdog_is_patient {
        /// The group whose members may manage the jobs of all users, as root may.
        operators: String = "carma".to_owned();
        /// A manager that is not root also takes jobs of other users, and runs them as its own account: `carma up --shared-account`.
        shared_account: bool = false;
        /// The manager ends, for its service to restart it, when one of its threads does not respond for this long: at least 5. Jobs continue. 0: never.
        watchdog_seconds: ZeroIsNone<Seconds> [0.0..=86_400.0] = Some(Seconds::from_secs(60));
        /// Limits of submissions.
        limits: LimitConfig;
        /// Logs of jobs.
        logs: LogConfig;
        /// How long finished jobs are kept.
        keep: KeepConfig;
        /// Resources that must be left on the host; otherwise no new job starts.
        host: host::Limits;
        /// Which GPUs are used, and how.
        gpus: GpuConfig;
        /// When jobs count as hanging or slow, and GPUs as faulty.
        watch: WatchConfig;
        /// How jobs are estimated.
        estimates: EstimateConfig;
        /// Access over the network.
        network: NetworkConfig;
        /// Agents on other servers.
        agents: AgentConfig;
        /// Metrics for Prometheus.
        metrics: MetricsConfig;
        /// Price and carbon intensity of energy.
        energy: EnergyConfig;
        /// Messages to users about their jobs.
        notifications: NotificationConfig;
    }
}

section! {
    /// Limits of submissions.
    LimitSettings => LimitConfig {
        /// Maximum number of unfinished jobs of a user. 0: no limit.
        jobs_per_user: ZeroIsNone<u64> [0.0..=1e12] = Some(200_000);
        /// Maximum number of GPUs of a job. 0: no limit.
        gpus_per_job: ZeroIsNone<u32> [0.0..=1e9] = None;
        /// Maximum memory of a job on each of its GPUs. 0: no limit.
        memory_per_job: ZeroIsNone<MiB> [0.0..=1e12] = None;
        /// Maximum runtime of an attempt; jobs without a time limit get this one. 0: no limit.
        seconds_per_job: ZeroIsNone<Seconds> [0.0..=3_153_600_000.0] = None;
        /// Maximum number of processes and threads of a job, where control groups enforce it. 0: no limit.
        processes_per_job: ZeroIsNone<u64> [0.0..=4_194_304.0] = Some(16_384);
        /// Maximum number of running jobs without GPUs. Unset: the number of cores, at least 4. 0: no limit.
        cpu_jobs: Option<u32> [0.0..=1e9] = None;
    }
}

section! {
    /// Logs of jobs.
    LogSettings => LogConfig {
        /// Maximum size of a job's log. Of a longer log, the beginning and the end are kept.
        size: MiB [1.0..=1e6] = MiB(64);
        /// Maximum size of all logs of a user. Beyond it, the logs of the oldest attempts are removed, and new attempts get smaller logs.
        size_per_user: MiB [1.0..=1e9] = MiB(20_480);
    }
}

section! {
    /// How long finished jobs are kept.
    KeepSettings => KeepConfig {
        /// Days that finished jobs and their logs are kept.
        days: u64 [1.0..=36_500.0] = 365;
        /// Maximum number of finished jobs kept per user, besides those that may have left a checkpoint.
        jobs_per_user: u64 [1.0..=1e9] = 100_000;
        /// Days that the measurements of GPUs are kept.
        sample_days: u64 [1.0..=36_500.0] = 90;
    }
}

section! {
    /// Which GPUs are used, and how.
    GpuSettings => GpuConfig {
        /// GPUs that are not used, by number or UUID.
        ignore: Vec<String> = Vec::new();
        /// GPUs that jobs share through MPS, by number or UUID; `["all"]` for all.
        mps: Vec<String> = Vec::new();
        /// Jobs cannot open the device files of GPUs that are not theirs, where control groups enforce it (root only).
        isolate: bool = true;
        /// Time between two samples of the GPUs.
        period: Seconds [0.1..=60.0] = Seconds::from_secs(1);
    }
}

section! {
    /// When jobs count as hanging or slow, and GPUs as faulty.
    WatchSettings => WatchConfig {
        /// A job hangs when its GPUs do nothing for it and its output and progress stand still for this long, after it has worked. 0: never.
        hang_after: ZeroIsNone<Seconds> [0.0..=31_536_000.0] = Some(Seconds::from_secs(1800));
        /// A job is slow when it makes progress below this part of its own earlier speed, beside the same jobs or fewer. 0: never.
        slow_below: ZeroIsNone<Fraction> [0.0..=1.0] = Some(Fraction::clamped(0.3));
        /// Time over which the progress of a job is measured.
        slow_after: Seconds [60.0..=31_536_000.0] = Seconds::from_secs(1800);
        /// A GPU is drained after this many faults of one kind (Xid and memory errors, losses, hanging driver calls). 0: never.
        drain_after: ZeroIsNone<u32> [0.0..=1000.0] = Some(3);
        /// Time within which these faults must come.
        drain_within: Seconds [60.0..=31_536_000.0] = Seconds::from_secs(86_400);
    }
}

section! {
    /// How jobs are estimated.
    EstimateSettings => EstimateConfig {
        /// When scripts are run without a GPU to estimate their memory.
        dry_run: DryRun = DryRun::Asked;
        /// Maximum runtime of a dry run.
        dry_run_seconds: Seconds [1.0..=86_400.0] = Seconds::from_secs(300);
        /// Which host does dry runs.
        dry_run_on: DryRunHost = DryRunHost::Auto;
        /// How long a dry run waits for an agent. After it, the job continues without one.
        agent_seconds: Seconds [0.0..=86_400.0] = Seconds::from_secs(600);
        /// The Python interpreter of dry runs of jobs without their own environment.
        python: PathBuf = "python3".into();
        /// Declared memory is raised if earlier runs of the same command used more, or ran out of memory with as much.
        raise_declared: bool = true;
        /// Runs of one user are used to estimate the same command of others. They can be told how much memory it used and how long it took.
        share_history: bool = false;
    }
}

choice! {
    /// When a job's script is run without a GPU to estimate it.
    #[derive(Default)]
    DryRun {
        /// Never.
        Never = "never",
        /// When the user asks for it.
        #[default]
        Asked = "asked",
        /// Whenever nothing else is known about the job.
        Always = "always",
    }
}

choice! {
    /// Which host does dry runs, where the manager has agents or pools.
    #[derive(Default)]
    DryRunHost {
        /// An agent, unless the manager's host has GPUs.
        #[default]
        Auto = "auto",
        /// The manager's host.
        Manager = "manager",
        /// An agent.
        Agents = "agents",
    }
}

section! {
    /// Access over the network.
    NetworkSettings => NetworkConfig, checked by network_is_safe {
        /// Address and port of the API. Unset: only the local socket.
        listen: Option<Address> = None;
        /// File of tokens, one per line: the user's name and the SHA-256 of the token.
        tokens: Option<PathBuf> = None;
        /// Certificate chain (PEM). Without it, only this host may connect.
        certificate: Option<PathBuf> = None;
        /// Private key of the certificate (PEM).
        key: Option<PathBuf> = None;
    }
}

section! {
    /// Agents on other servers.
    AgentSettings => AgentConfig {
        /// Address and port for agents. Unset: any free port on all addresses, once there is a pool.
        listen: Option<Address> = None;
        /// The name or address by which agents reach this host. Unset: its host name.
        address: Option<String> = None;
        /// An agent without an answer of the manager for this long ends its jobs and itself. A manager on another host takes over after 60 s.
        lease: Seconds [2.0..=86_400.0] = Seconds::from_secs(120);
        /// How much longer than the lease the manager waits before it puts the jobs of a lost server back.
        grace: Seconds [0.5..=86_400.0] = Seconds::from_secs(15);
    }
}

section! {
    /// Metrics for Prometheus.
    MetricsSettings => MetricsConfig {
        /// Address and port that serve only the metrics, without a token. Unset: only the API serves them.
        listen: Option<Address> = None;
        /// Metrics contain the names of jobs and users.
        job_names: bool = true;
        /// GPU metrics are also exported under the names of dcgm-exporter.
        dcgm_names: bool = true;
    }
}

section! {
    /// Price and carbon intensity of energy.
    EnergySettings => EnergyConfig {
        /// Price of a kilowatt-hour.
        price: Option<f64> [0.0..=1e6] = None;
        /// Currency of the price.
        currency: String = "EUR".to_owned();
        /// Grams of CO2 per kilowatt-hour.
        carbon: Option<f64> [0.0..=1e6] = None;
    }
}

section! {
    /// Messages to users about their jobs.
    NotificationSettings => NotificationConfig {
        /// Users may receive messages.
        enabled: bool = true;
        /// Events are collected into one message until none came for this long.
        gather_seconds: Seconds [0.0..=3600.0] = Seconds::from_secs(2);
        /// Minimum time between two messages to a user over the same channel.
        every_seconds: Seconds [0.0..=86_400.0] = Seconds::from_secs(30);
    }
}

/// A shorter limit would end a healthy manager.
fn watchdog_is_patient(manager: &ManagerConfig, check: &mut Checker) {
    let too_short = manager.watchdog_seconds.filter(|limit| limit.get() < SHORTEST_LIMIT.as_secs_f64());
    too_short.inspect(|limit| check.refuse_key("watchdog_seconds", limit.get(), format!("at least {} s, or 0", SHORTEST_LIMIT.as_secs())));
}

/// Users must be told apart, and secrets must not cross a network in clear text.
fn network_is_safe(network: &NetworkConfig, check: &mut Checker) {
    let NetworkConfig { listen, tokens, certificate, key } = network;
    if let Some(address) = listen {
        if tokens.is_none() {
            check.refuse_key("listen", address, "manager.network.tokens as well: without tokens, users cannot be told apart");
        }
        if certificate.is_none() && !address.ip().is_loopback() {
            check.refuse_key("listen", address, "an address of this host (127.0.0.1), or a certificate to connect from others");
        }
    }
    let missing = match (certificate, key) {
        (Some(file), None) => Some(("certificate", file, "manager.network.key as well")),
        (None, Some(file)) => Some(("key", file, "manager.network.certificate as well")),
        _ => None,
    };
    missing.inspect(|(name, file, needed)| check.refuse_key(name, file.display(), *needed));
}
