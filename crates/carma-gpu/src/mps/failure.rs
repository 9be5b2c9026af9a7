//! Failures of MPS as CUDA programs report them.

use carma_core::Verdict;

/// Failures of a client that MPS caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpsFailure {
    /// The server died, did not answer, or waits for the clients of an earlier failure to end.
    ServerGone,
    /// The server has reached its limit of clients.
    Full,
    /// The server was ordered to end this client.
    Terminated,
}

/// CUDA's names and messages of each failure.
const MESSAGES: [(MpsFailure, &[&str]); 3] = [
    (
        MpsFailure::ServerGone,
        &[
            "MPS client failed to connect to the MPS control daemon or the MPS server",
            "the remote procedural call between the MPS server and the MPS client failed",
            "the MPS server is not ready to accept new MPS client requests",
            "MPS_CONNECTION_FAILED",
            "MPS_RPC_FAILURE",
            "MPS_SERVER_NOT_READY",
            "MpsConnectionFailed",
            "MpsRpcFailure",
            "MpsServerNotReady",
        ],
    ),
    (
        MpsFailure::Full,
        &[
            "the hardware resources required to create MPS client have been exhausted",
            "the hardware resources required to support device connections have been exhausted",
            "MPS_MAX_CLIENTS_REACHED",
            "MPS_MAX_CONNECTIONS_REACHED",
            "MpsMaxClientsReached",
            "MpsMaxConnectionsReached",
        ],
    ),
    (MpsFailure::Terminated, &["the MPS client has been terminated by the server", "MPS_CLIENT_TERMINATED", "MpsClientTerminated"]),
];

impl MpsFailure {
    /// The failure at the end of a job's log; the last, if there are several.
    ///
    /// ```
    /// use carma_gpu::mps::MpsFailure;
    /// let log = "RuntimeError: CUDA error: the remote procedural call between the MPS server and the MPS client failed";
    /// assert_eq!(MpsFailure::in_log(log), Some(MpsFailure::ServerGone));
    /// assert_eq!(MpsFailure::in_log("CUDA out of memory."), None);
    /// ```
    pub fn in_log(text: &str) -> Option<Self> {
        let found = |(failure, messages): &(Self, &[&str])| Some((messages.iter().filter_map(|word| text.rfind(word)).max()?, *failure));
        MESSAGES.iter().filter_map(found).max_by_key(|(place, _)| *place).map(|(_, failure)| failure)
    }

    /// The verdict on an attempt with this failure; unset if the job is to blame as for any other failure.
    pub const fn verdict(self) -> Option<Verdict> {
        match self {
            // A full server serves again, as a new one does: the job is not to blame.
            Self::ServerGone | Self::Full => Some(Verdict::MpsServerDied),
            Self::Terminated => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_report_it_in_many_ways() {
        let of = MpsFailure::in_log;
        assert_eq!(of("could not synchronize on CUDA context: CUDA_ERROR_MPS_RPC_FAILURE: the remote ..."), Some(MpsFailure::ServerGone));
        assert_eq!(of("cudaErrorMpsConnectionFailed (error 805)"), Some(MpsFailure::ServerGone));
        assert_eq!(of("CUDA error: the MPS client has been terminated by the server"), Some(MpsFailure::Terminated));
        assert_eq!(of("CUDA_ERROR_MPS_MAX_CLIENTS_REACHED").and_then(MpsFailure::verdict), Some(Verdict::MpsServerDied));
        assert_eq!(of("starting nvidia-cuda-mps-server\nloss 0.3"), None);
    }

    #[test]
    fn the_last_failure_counts() {
        let log = "CUDA_ERROR_MPS_SERVER_NOT_READY, trying again\nCUDA error: the MPS client has been terminated by the server\n";
        assert_eq!(MpsFailure::in_log(log), Some(MpsFailure::Terminated));
    }
}
