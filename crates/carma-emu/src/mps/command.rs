//! Commands of the control program.

use super::provision::{limit, percentage};

/// A command. Without an optional server, it applies to later servers. NVIDIA's daemon reads missing and wrong numbers as 0; so does this one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    ServerList,
    ServerStatus { server: u32 },
    StartServer { user: Option<u32> },
    ShutdownServer { server: u32, force: bool },
    ClientList { server: u32 },
    TerminateClient { server: u32, client: u32 },
    Threads { server: Option<u32> },
    SetThreads { server: Option<u32>, percentage: Option<f64> },
    Memory { server: Option<u32>, device: usize },
    SetMemory { server: Option<u32>, device: usize, bytes: Option<u64> },
    Processes { server: Option<u32> },
    Quit { seconds: Option<u64> },
}

impl Command {
    /// Whether it ends something, which only root and the daemon's owner may do.
    pub(super) const fn ends_something(&self) -> bool {
        matches!(self, Self::ShutdownServer { .. } | Self::TerminateClient { .. } | Self::Quit { .. })
    }

    /// Parses a line; the error is the word that is no command.
    pub(super) fn parse(line: &str) -> Result<Self, &str> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let word = |place: usize| words.get(place).copied().unwrap_or_default();
        let number = |place: usize| word(place).parse().unwrap_or_default();
        let ordinal = |place: usize| word(place).parse().unwrap_or_default();
        Ok(match name {
            "get_server_list" => Self::ServerList,
            "get_server_status" => Self::ServerStatus { server: number(0) },
            "start_server" => {
                Self::StartServer { user: words.iter().position(|word| *word == "-uid").and_then(|flag| word(flag + 1).parse().ok()) }
            }
            "shutdown_server" => Self::ShutdownServer { server: number(0), force: words.contains(&"-f") },
            "get_client_list" => Self::ClientList { server: number(0) },
            "terminate_client" => Self::TerminateClient { server: number(0), client: number(1) },
            "get_default_active_thread_percentage" => Self::Threads { server: None },
            "get_active_thread_percentage" => Self::Threads { server: Some(number(0)) },
            "set_default_active_thread_percentage" => Self::SetThreads { server: None, percentage: percentage(word(0)) },
            "set_active_thread_percentage" => Self::SetThreads { server: Some(number(0)), percentage: percentage(word(1)) },
            "get_default_device_pinned_mem_limit" => Self::Memory { server: None, device: ordinal(0) },
            "get_device_pinned_mem_limit" => Self::Memory { server: Some(number(0)), device: ordinal(1) },
            "set_default_device_pinned_mem_limit" => Self::SetMemory { server: None, device: ordinal(0), bytes: limit(word(1)) },
            "set_device_pinned_mem_limit" => Self::SetMemory { server: Some(number(0)), device: ordinal(1), bytes: limit(word(2)) },
            "ps" => Self::Processes { server: (word(0) == "-p").then(|| number(1)) },
            "quit" => Self::Quit { seconds: (word(0) == "-t").then(|| word(1).parse().unwrap_or_default()) },
            _ => return Err(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_nvidias_daemon_reads_them() {
        let cases = [
            ("get_server_list", Command::ServerList),
            ("  shutdown_server 12 -f ", Command::ShutdownServer { server: 12, force: true }),
            ("start_server -uid 1000", Command::StartServer { user: Some(1000) }),
            ("start_server -uid x", Command::StartServer { user: None }),
            ("start_server -uid", Command::StartServer { user: None }),
            ("terminate_client 123 1024", Command::TerminateClient { server: 123, client: 1024 }),
            ("set_active_thread_percentage 12 12.5", Command::SetThreads { server: Some(12), percentage: Some(12.5) }),
            ("set_default_active_thread_percentage 101", Command::SetThreads { server: None, percentage: None }),
            ("set_default_device_pinned_mem_limit 0 10G", Command::SetMemory { server: None, device: 0, bytes: Some(10 << 30) }),
            ("get_client_list", Command::ClientList { server: 0 }),
            ("get_client_list x", Command::ClientList { server: 0 }),
            ("ps -p", Command::Processes { server: Some(0) }),
            ("ps x", Command::Processes { server: None }),
            ("quit -t 5", Command::Quit { seconds: Some(5) }),
            ("quit now", Command::Quit { seconds: None }),
        ];
        for (line, command) in cases {
            assert_eq!(Command::parse(line), Ok(command), "{line}");
        }
        assert_eq!(["", "help me"].map(Command::parse), [Err(""), Err("help")]);
    }
}
