//! Commands of the control program.

use super::provision::{bytes, percentage};

/// A command. Without an optional server, it applies to later servers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    ServerList,
    ServerStatus { server: u32 },
    StartServer { user: u32 },
    ShutdownServer { server: u32, force: bool },
    ClientList { server: u32 },
    TerminateClient { server: u32, client: u32 },
    Threads { server: Option<u32> },
    SetThreads { server: Option<u32>, percentage: f64 },
    Memory { server: Option<u32>, device: usize },
    SetMemory { server: Option<u32>, device: usize, bytes: u64 },
    Processes { server: Option<u32> },
    Quit { seconds: Option<u64> },
}

impl Command {
    /// Whether it only reads; every user may do so.
    pub(super) const fn is_question(&self) -> bool {
        matches!(
            self,
            Self::ServerList
                | Self::ServerStatus { .. }
                | Self::ClientList { .. }
                | Self::Threads { .. }
                | Self::Memory { .. }
                | Self::Processes { .. }
        )
    }

    /// Parses a line; none if there is no such command, or not with these arguments.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse().ok();
        Some(match *words.as_slice() {
            ["get_server_list"] => Self::ServerList,
            ["get_server_status", server] => Self::ServerStatus { server: number(server)? },
            ["start_server", "-uid", user] => Self::StartServer { user: number(user)? },
            ["shutdown_server", server] => Self::ShutdownServer { server: number(server)?, force: false },
            ["shutdown_server", server, "-f"] => Self::ShutdownServer { server: number(server)?, force: true },
            ["get_client_list", server] => Self::ClientList { server: number(server)? },
            ["terminate_client", server, client] => Self::TerminateClient { server: number(server)?, client: number(client)? },
            ["get_default_active_thread_percentage"] => Self::Threads { server: None },
            ["get_active_thread_percentage", server] => Self::Threads { server: Some(number(server)?) },
            ["set_default_active_thread_percentage", share] => Self::SetThreads { server: None, percentage: percentage(share)? },
            ["set_active_thread_percentage", server, share] => {
                Self::SetThreads { server: Some(number(server)?), percentage: percentage(share)? }
            }
            ["get_default_device_pinned_mem_limit", device] => Self::Memory { server: None, device: device.parse().ok()? },
            ["get_device_pinned_mem_limit", server, device] => Self::Memory { server: Some(number(server)?), device: device.parse().ok()? },
            ["set_default_device_pinned_mem_limit", device, most] => {
                Self::SetMemory { server: None, device: device.parse().ok()?, bytes: bytes(most)? }
            }
            ["set_device_pinned_mem_limit", server, device, most] => {
                Self::SetMemory { server: Some(number(server)?), device: device.parse().ok()?, bytes: bytes(most)? }
            }
            ["ps"] => Self::Processes { server: None },
            ["ps", "-p", server] => Self::Processes { server: Some(number(server)?) },
            ["quit"] => Self::Quit { seconds: None },
            ["quit", "-t", seconds] => Self::Quit { seconds: Some(seconds.parse().ok()?) },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_documented() {
        let cases = [
            ("get_server_list", Command::ServerList),
            ("  shutdown_server 12 -f ", Command::ShutdownServer { server: 12, force: true }),
            ("start_server -uid 1000", Command::StartServer { user: 1000 }),
            ("terminate_client 123 1024", Command::TerminateClient { server: 123, client: 1024 }),
            ("set_active_thread_percentage 12 12.5", Command::SetThreads { server: Some(12), percentage: 12.5 }),
            ("set_default_device_pinned_mem_limit 0 10G", Command::SetMemory { server: None, device: 0, bytes: 10 << 30 }),
            ("quit -t 5", Command::Quit { seconds: Some(5) }),
        ];
        for (line, command) in cases {
            assert_eq!(Command::parse(line), Some(command), "{line}");
        }
        for line in ["", "help me", "set_default_active_thread_percentage 101", "get_client_list", "get_client_list x", "quit now"] {
            assert_eq!(Command::parse(line), None, "{line}");
        }
    }
}
