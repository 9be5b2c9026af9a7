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

/// The limit in the answer to `get_default_device_pinned_mem_limit`, in MiB; none if there is no limit. From 1 GiB on, the daemon prints whole GiB.
pub fn memory_limit(answer: &str) -> Option<u64> {
    let answer = answer.trim();
    let (amount, unit) = answer.split_at_checked(answer.len().checked_sub(1)?)?;
    let scale = match unit {
        "M" => 1,
        "G" => 1024,
        _ => return None,
    };
    amount.parse::<u64>().ok()?.checked_mul(scale)
}

/// An answer that is no answer. The control program prints it to its output like any other, and exits with success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The daemon does not have this command.
    UnknownCommand,
    /// The daemon does not take it from this user.
    Privilege,
    /// There is no such server, or an argument is wrong.
    Argument,
}

/// The refusal in an answer, in the words of driver 535's daemon.
pub(super) fn refusal(answer: &str) -> Option<Refusal> {
    let line = answer.lines().next()?.trim();
    let begins = |words: &[&str]| words.iter().any(|words| line.starts_with(words));
    if begins(&["Unknown command"]) {
        Some(Refusal::UnknownCommand)
    } else if begins(&["Not enough privilege", "Insufficient privileges"]) {
        Some(Refusal::Privilege)
    } else if line.starts_with("Server ") && line.trim_end_matches('!').ends_with("not found")
        || begins(&["Invalid ", "A user id (UID) is required"])
    {
        Some(Refusal::Argument)
    } else {
        None
    }
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
        let states = ["INITIALIZING\n", "ACTIVE\n", "FAULT\n", "Unknown command \"get_server_status\"\n"].map(server_state);
        assert_eq!(states, [Some(ServerState::Initializing), Some(ServerState::Active), Some(ServerState::Fault), None]);
        assert_eq!(percentage("50.0\n"), Some(50.0));
        assert_eq!(percentage("500\n"), None);
        assert_eq!(["4G\n", "1023M\n", "\n", "Server 1 not found\n", "é"].map(memory_limit), [Some(4096), Some(1023), None, None, None]);
    }

    #[test]
    fn refusals_are_distinguished_from_answers() {
        let cases = [
            ("Unknown command \"get_server_status\"\n", Some(Refusal::UnknownCommand)),
            ("Not enough privilege to execute quit command\n", Some(Refusal::Privilege)),
            ("Insufficient privileges for UID 65534\n", Some(Refusal::Privilege)),
            ("Server 1 not found\nServer 1 not found!\n1\n", Some(Refusal::Argument)),
            ("Server not found\n", Some(Refusal::Argument)),
            ("A user id (UID) is required to start a new server\n", Some(Refusal::Argument)),
            ("", None),
            ("100.0\n", None),
            ("4G\n", None),
            ("6472\n6473\n", None),
        ];
        for (answer, expected) in cases {
            assert_eq!(refusal(answer), expected, "{answer}");
        }
    }

    #[test]
    fn messages_about_the_daemon_are_recognised() {
        assert!(says_no_daemon("Cannot find MPS control daemon process\n"));
        assert!(says_already_running("An instance of this daemon is already running\n"));
    }
}
