//! The manager's configuration file: the rules of decisions, and under `[manager]` what concerns the manager alone.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use carma_core::{MiB, Settings};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host;
use crate::submission::LONGEST_SPAN;

/// All that can be configured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// The rules of decisions.
    pub rules: Settings,
    /// What concerns the manager alone.
    pub manager: ManagerSettings,
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

section!(
    /// What concerns the manager alone.
    ManagerSettings {
        /// The group whose members may see to everybody's jobs, as root may.
        operators: String = "carma".to_owned(),
        /// The most that is accepted.
        limits: SubmitLimits = SubmitLimits::default(),
        /// Logs of jobs.
        logs: LogSettings = LogSettings::default(),
        /// What is kept of jobs that are over.
        keep: KeepSettings = KeepSettings::default(),
        /// What is to be left of the host, or nothing new is started.
        host: host::Limits = host::Limits::default(),
        /// How GPUs are shared.
        gpus: GpuSettings = GpuSettings::default(),
        /// How jobs are estimated.
        estimates: EstimateSettings = EstimateSettings::default(),
        /// Access over the network.
        network: NetworkSettings = NetworkSettings::default(),
        /// Metrics for Prometheus.
        metrics: MetricsSettings = MetricsSettings::default(),
        /// What energy costs.
        energy: EnergySettings = EnergySettings::default(),
        /// How users are told what became of their jobs.
        notifications: NotificationSettings = NotificationSettings::default(),
    }
);

section!(
    /// The most that is accepted and run; 0: any number.
    SubmitLimits {
        /// Jobs of one user that are not over.
        jobs_per_user: u64 = 200_000,
        /// GPUs of one job.
        gpus_per_job: u32 = 0,
        /// GPU memory of one job, on each of its GPUs, in MiB.
        memory_per_job: MiB = MiB(0),
        /// Seconds one attempt may ask for; jobs that ask for none get this limit.
        seconds_per_job: u64 = 0,
        /// Jobs without GPUs that run at once; unset: as many as the host has cores, and four at least.
        cpu_jobs: Option<u32> = None,
    }
);

section!(
    /// Logs of jobs.
    LogSettings {
        /// The most that is kept of each log, in MiB: the beginning, and the end.
        size: u64 = 64,
    }
);

section!(
    /// What is kept of jobs that are over, with their logs.
    KeepSettings {
        /// Days that jobs are kept.
        days: u64 = 365,
        /// Finished jobs of one user that are kept; jobs that may have left a checkpoint are kept besides.
        jobs_per_user: u64 = 100_000,
        /// Days that minutes of GPUs are kept.
        sample_days: u64 = 90,
    }
);

section!(
    /// How GPUs are shared.
    GpuSettings {
        /// These are left alone, by number or UUID.
        ignore: Vec<String> = Vec::new(),
        /// These are shared by MPS, by number or UUID; `all` means all.
        mps: Vec<String> = Vec::new(),
        /// Seconds between looks.
        period: f64 = 1.0,
    }
);

section!(
    /// How jobs are estimated.
    EstimateSettings {
        /// When scripts are dry-run: `never`, `asked` or `always`.
        dry_run: DryRun = DryRun::Asked,
        /// Seconds a dry run may take.
        dry_run_seconds: u64 = 300,
        /// The Python that dry-runs where the job has no environment of its own.
        python: PathBuf = "python3".into(),
        /// Whether declared memory is raised where earlier runs of the same command needed more.
        raise_declared: bool = true,
    }
);

/// When a job's script is run without a GPU to estimate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DryRun {
    /// Never.
    Never,
    /// When its user asks for it.
    #[default]
    Asked,
    /// Whenever nothing else is known.
    Always,
}

section!(
    /// Access over the network.
    NetworkSettings {
        /// The address and port to listen on; unset: the socket alone.
        listen: Option<SocketAddr> = None,
        /// The file of tokens, one a line: the user's name and the SHA-256 of the token.
        tokens: Option<PathBuf> = None,
        /// The certificate, with those that vouch for it (PEM). Without, only the machine itself may connect.
        certificate: Option<PathBuf> = None,
        /// The certificate's key (PEM).
        key: Option<PathBuf> = None,
    }
);

section!(
    /// Metrics for Prometheus.
    MetricsSettings {
        /// Whoever reaches this address and port is shown the metrics, and nothing else, without a token; unset: the API alone has them.
        listen: Option<SocketAddr> = None,
        /// Tell what jobs are called and whose they are.
        job_names: bool = true,
        /// Tell what dcgm-exporter tells by its names as well.
        dcgm_names: bool = true,
    }
);

section!(
    /// What energy costs.
    EnergySettings {
        /// A kilowatt-hour.
        price: Option<f64> = None,
        /// In this currency.
        currency: String = "EUR".to_owned(),
        /// Grams of CO2 a kilowatt-hour.
        carbon: Option<f64> = None,
    }
);

section!(
    /// How users are told what became of their jobs.
    NotificationSettings {
        /// Whether they are told at all.
        enabled: bool = true,
        /// Seconds without anything new after which all that happened is told together.
        gather_seconds: f64 = 2.0,
        /// Seconds between two messages to a user by the same way.
        every_seconds: f64 = 30.0,
    }
);

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigurationError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is wrong.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Configuration {
    /// Reads the file; one that is not there says nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(|reason| ConfigurationError::Wrong { path: path.to_owned(), reason }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigurationError::Unreadable { path: path.to_owned(), source }),
        }
    }

    /// Reads the text of a file, and checks every number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let manager = table.remove("manager").map(toml::Value::try_into).transpose().map_err(|error| format!("[manager]: {error}"))?;
        let rules: Settings = table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
        rules.check().map_err(|errors| errors.to_string())?;
        let manager: ManagerSettings = manager.unwrap_or_default();
        manager.check().map(|()| Self { rules, manager })
    }
}

impl ManagerSettings {
    fn check(&self) -> Result<(), String> {
        let NetworkSettings { listen, tokens, certificate, key } = &self.network;
        let within = |what: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) { Ok(()) } else { Err(format!("{what} is {value}: give {least} to {most}")) }
        };
        within("manager.gpus.period", self.gpus.period, 0.1, 60.0)?;
        within("manager.logs.size", self.logs.size as f64, 1.0, 1e6)?;
        within("manager.keep.jobs_per_user", self.keep.jobs_per_user as f64, 1.0, 1e9)?;
        within("manager.keep.days", self.keep.days as f64, 1.0, 36_500.0)?;
        within("manager.keep.sample_days", self.keep.sample_days as f64, 1.0, 36_500.0)?;
        within("manager.limits.seconds_per_job", self.limits.seconds_per_job as f64, 0.0, LONGEST_SPAN.get())?;
        within("manager.estimates.dry_run_seconds", self.estimates.dry_run_seconds as f64, 1.0, 86_400.0)?;
        within("manager.notifications.gather_seconds", self.notifications.gather_seconds, 0.0, 3600.0)?;
        within("manager.notifications.every_seconds", self.notifications.every_seconds, 0.0, 86_400.0)?;
        for (what, value) in [("manager.energy.price", self.energy.price), ("manager.energy.carbon", self.energy.carbon)] {
            value.map_or(Ok(()), |value| within(what, value, 0.0, 1e6))?;
        }
        match listen {
            Some(_) if tokens.is_none() => {
                Err("manager.network.listen needs manager.network.tokens: nobody could be told from anybody".to_owned())
            }
            Some(address) if certificate.is_none() && !address.ip().is_loopback() => {
                Err(format!("manager.network.listen is {address}: without a certificate, only the machine itself may connect (127.0.0.1)"))
            }
            _ if certificate.is_some() != key.is_some() => Err("manager.network: certificate and key go together".to_owned()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_managers_own_and_the_rules_stand_in_one_file() {
        let text = "policy = \"magm\"\n[queue]\nbackfill = 10\n[manager]\noperators = \"wheel\"\n[manager.limits]\ngpus_per_job = 4\n[manager.host]\nmemory = 2048\n";
        let read = Configuration::parse(text).unwrap();
        assert_eq!(read.rules.policy.as_deref(), Some("magm"));
        assert_eq!((read.manager.operators.as_str(), read.manager.limits.gpus_per_job, read.manager.host.memory), ("wheel", 4, MiB(2048)));
        assert_eq!(Configuration::parse("").unwrap(), Configuration::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| Configuration::parse(text).unwrap_err();
        assert!(wrong("[manager]\nopperators = \"x\"").contains("opperators"));
        assert!(wrong("polcy = \"magm\"").contains("polcy"));
        assert!(wrong("policy = \"best\"").contains("best"));
        assert_eq!(wrong("[manager.gpus]\nperiod = 0"), "manager.gpus.period is 0: give 0.1 to 60");
        assert!(wrong("[manager.network]\nlisten = \"127.0.0.1:7070\"").contains("tokens"));
        assert!(wrong("[manager.network]\nlisten = \"0.0.0.0:7070\"\ntokens = \"t\"").contains("certificate"));
    }
}
