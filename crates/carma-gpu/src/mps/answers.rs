//! Parses the output of the control daemon.

/// The state that a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It starts up.
    Initializing,
    /// It serves.
    Active,
    /// A client caused a GPU error; all clients must end before new ones are served.
    Fault,
}

/// The process numbers in an answer, one a line; an empty answer has none.
pub fn process_numbers(answer: &str) -> Option<Vec<u32>> {
    answer.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| line.parse().ok()).collect()
}

/// The state in the answer to `get_server_status`.
pub fn server_state(answer: &str) -> Option<ServerState> {
    match answer.trim() {
        "INITIALIZING" => Some(ServerState::Initializing),
        "ACTIVE" => Some(ServerState::Active),
        "FAULT" => Some(ServerState::Fault),
        _ => None,
    }
}

/// The share in the answer to `get_default_active_thread_percentage`.
pub fn percentage(answer: &str) -> Option<f64> {
    answer.trim().parse().ok().filter(|percentage| (0.0..=100.0).contains(percentage))
}

/// Whether the control program reports that there is no daemon.
pub(super) fn says_no_daemon(text: &str) -> bool {
    text.contains("Cannot find MPS control daemon process")
}

/// Whether it reports that there is one already.
pub(super) fn says_already_running(text: &str) -> bool {
    text.contains("An instance of this daemon is already running")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processes_are_read() {
        assert_eq!(process_numbers("6472\n"), Some(vec![6472]));
        assert_eq!(process_numbers("9741\n9743\n"), Some(vec![9741, 9743]));
        assert_eq!(process_numbers("\n"), Some(Vec::new()));
        assert_eq!(process_numbers(""), Some(Vec::new()));
        assert_eq!(process_numbers("Server 12 not found\n"), None);
    }

    #[test]
    fn states_and_shares_are_read() {
        let states = ["INITIALIZING\n", "ACTIVE\n", "FAULT\n", "Unknown command: get_server_status\n"].map(server_state);
        assert_eq!(states, [Some(ServerState::Initializing), Some(ServerState::Active), Some(ServerState::Fault), None]);
        assert_eq!(percentage("50.0\n"), Some(50.0));
        assert_eq!(percentage("500\n"), None);
    }

    #[test]
    fn words_about_the_daemon_are_known() {
        assert!(says_no_daemon("Cannot find MPS control daemon process\n"));
        assert!(says_already_running("An instance of this daemon is already running\n"));
    }
}
