//! Why a source gives no counters, and what would help.

use thiserror::Error;

/// What keeps a source from giving counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// It was neither wished for nor needed.
    #[error("not asked for")]
    NotAsked,
    /// NVML does not offer them for these GPUs.
    #[error("these GPUs or their driver have no GPM, which begins with Hopper")]
    NoGpm,
    /// We may not read them.
    #[error("profiling counters are for administrators only on this machine")]
    AdministratorsOnly,
    /// The driver answered otherwise.
    #[error("{0}")]
    Driver(String),
    /// The program is not there.
    #[error("{0} is not installed")]
    NotInstalled(String),
    /// The program cannot be run.
    #[error("cannot run {program}: {reason}")]
    CannotRun {
        /// Which.
        program: String,
        /// Why.
        reason: String,
    },
    /// There is no host engine to ask.
    #[error("dcgmi finds no DCGM host engine")]
    NoHostEngine,
    /// The host engine does not give the fields.
    #[error("the DCGM host engine refuses to watch the counters: {0}")]
    NotWatched(String),
    /// Another error that dcgmi printed.
    #[error("dcgmi: {0}")]
    Dcgmi(String),
    /// The program came to an end.
    #[error("dcgmi ended: {0}")]
    Ended(String),
    /// No value for long.
    #[error("the counters have read N/A for a while: another profiler holds them, or these GPUs have none")]
    Held,
    /// No answer for long.
    #[error("no counters have come for a while")]
    Silent,
    /// Nobody answers at the address.
    #[error("{url} does not answer: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The page has none of the counters.
    #[error("{0} answers, but shows no DCGM_FI_PROF_* counters")]
    NotExported(String),
}

impl Problem {
    /// From a line that `dcgmi` printed, if it tells of an error.
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
        } else if lower.starts_with("error setting watches") {
            let result = line.split_once("Result:").map_or(line, |(_, result)| result);
            Self::NotWatched(result.trim().to_owned())
        } else {
            Self::Dcgmi(line.to_owned())
        })
    }

    /// The command that would help, where one would.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NotInstalled(_) => Some("apt install datacenter-gpu-manager-4-core && systemctl enable --now nvidia-dcgm"),
            Self::NoHostEngine => Some("systemctl enable --now nvidia-dcgm"),
            Self::Ended(_) | Self::Silent => Some("systemctl restart nvidia-dcgm"),
            // The module reads its options when it is loaded.
            Self::AdministratorsOnly => {
                Some("echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > /etc/modprobe.d/nvidia-profiling.conf && reboot")
            }
            Self::Held => Some("dcgmi profile --resume"),
            // Unless told otherwise it counts every thirty seconds only, and leaves most of these counters out.
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
    fn what_dcgmi_says_is_told_apart() {
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
        assert_eq!(problem("Error: Invalid entity"), Some(Problem::Dcgmi("Error: Invalid entity".to_owned())));
        assert_eq!(problem("GPU 0     N/A"), None);
    }
}
