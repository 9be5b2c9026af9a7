//! Why a source gives no counters, and the remedy.

use thiserror::Error;

/// Why a source gives no counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// It is not needed, or another source is forced.
    #[error("not asked for")]
    NotAsked,
    /// NVML does not offer them for these GPUs.
    #[error("these GPUs or their driver have no GPM (Hopper or later)")]
    NoGpm,
    /// This process may not read them.
    #[error("profiling counters are for administrators only on this machine")]
    AdministratorsOnly,
    /// Another answer of the driver.
    #[error("{0}")]
    Driver(String),
    /// The program is not installed.
    #[error("{0} is not installed")]
    NotInstalled(String),
    /// The program cannot be run.
    #[error("cannot run {program}: {reason}")]
    CannotRun {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// There is no host engine.
    #[error("dcgmi finds no DCGM host engine")]
    NoHostEngine,
    /// The host engine has not loaded its profiling module.
    #[error("the DCGM host engine has not loaded its profiling module, which needs root")]
    ModuleNotLoaded,
    /// The host engine does not give the fields.
    #[error("the DCGM host engine refuses to watch the counters: {0}")]
    NotWatched(String),
    /// Another error that dcgmi printed.
    #[error("dcgmi: {0}")]
    Dcgmi(String),
    /// The program ended.
    #[error("dcgmi ended: {0}")]
    Ended(String),
    /// No value for a long time.
    #[error("the counters read N/A: another profiler uses them, or these GPUs have none")]
    Held,
    /// No answer for a long time.
    #[error("no counters have arrived recently")]
    Silent,
    /// The address does not answer.
    #[error("{url} does not answer: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// The error.
        reason: String,
    },
    /// The page has none of the counters.
    #[error("{0} answers without DCGM_FI_PROF_* counters")]
    NotExported(String),
}

impl Problem {
    /// From a line that `dcgmi` printed, if it is an error.
    pub fn from_line(line: &str) -> Option<Self> {
        let line = line.trim();
        let lower = line.to_ascii_lowercase();
        if !lower.starts_with("error") {
            return None;
        }
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        Some(if says(&["establish a connection", "connect to host engine", "host engine connection", "host engine not running"]) {
            Self::NoHostEngine
        } else if says(&["permission", "not permitted", "root"]) {
            Self::AdministratorsOnly
        } else if says(&["module of dcgm that is not currently loaded"]) {
            Self::ModuleNotLoaded
        } else if lower.starts_with("error setting watches") {
            let result = line.split_once("Result:").map_or(line, |(_, result)| result);
            Self::NotWatched(result.trim().to_owned())
        } else {
            Self::Dcgmi(line.to_owned())
        })
    }

    /// The command that would help, if any.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NotInstalled(_) => Some("apt install datacenter-gpu-manager-4-core && systemctl enable --now nvidia-dcgm"),
            Self::NoHostEngine => Some("systemctl enable --now nvidia-dcgm"),
            Self::Ended(_) | Self::Silent | Self::ModuleNotLoaded => Some("systemctl restart nvidia-dcgm"),
            // The module reads its options when it is loaded.
            Self::AdministratorsOnly => {
                Some("echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > /etc/modprobe.d/nvidia-profiling.conf && reboot")
            }
            Self::Held => Some("dcgmi profile --resume"),
            // By default it samples only every thirty seconds, and omits most of these counters.
            Self::Unreachable { .. } | Self::NotExported(_) => Some(
                "docker run -d --gpus all --cap-add SYS_ADMIN -p 9400:9400 nvidia/dcgm-exporter -c 1000 -f /etc/dcgm-exporter/dcp-metrics-included.csv",
            ),
            Self::NotAsked | Self::NoGpm | Self::Driver(_) | Self::CannotRun { .. } | Self::NotWatched(_) | Self::Dcgmi(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn errors_of_dcgmi_are_recognised() {
        let problem = |line| Problem::from_line(line);
        assert_eq!(problem("Error: unable to establish a connection to the specified host: localhost"), Some(Problem::NoHostEngine));
        assert_eq!(
            problem("Error: Unable to connect to host engine. Host engine connection invalid/disconnected."),
            Some(Problem::NoHostEngine)
        );
        let refused = "Error setting watches. Result: The third-party Profiling module returned an unrecoverable error";
        assert_eq!(
            problem(refused),
            Some(Problem::NotWatched("The third-party Profiling module returned an unrecoverable error".to_owned()))
        );
        assert_eq!(problem("Error setting watches. Result: Operation not permitted"), Some(Problem::AdministratorsOnly));
        let not_loaded = "Error setting watches. Result: -33: This request is serviced by a module of DCGM that is not currently loaded";
        assert_eq!(problem(not_loaded), Some(Problem::ModuleNotLoaded));
        assert_eq!(problem("Error: Invalid entity"), Some(Problem::Dcgmi("Error: Invalid entity".to_owned())));
        assert_eq!(problem("GPU 0     N/A"), None);
    }
}
