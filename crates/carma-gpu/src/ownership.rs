//! Whose process it is, and what it runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::{Uid, User};
use serde::Serialize;

/// What the system knows of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ownership {
    /// The number of its user.
    pub uid: u32,
    /// The user's name, where there is one.
    pub user: Option<String>,
    /// Its command line.
    pub command: String,
    /// The first characters of its container's name, if it runs in one.
    pub container: Option<String>,
}

/// Looks a process up; unset when it is gone, or out of our sight.
pub fn ownership(pid: u32) -> Option<Ownership> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let uid = fs::metadata(&folder).ok()?.uid();
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    let command = if words.is_empty() { fs::read_to_string(folder.join("comm")).ok()?.trim().to_owned() } else { words.join(" ") };
    let container = fs::read_to_string(folder.join("cgroup")).ok().and_then(|groups| container(&groups));
    // Names come from wherever the system has its users: files, LDAP, ...
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    Some(Ownership { uid, user, command, container })
}

/// The container a process's control groups belong to. Docker, Podman, containerd and CRI-O all put its name of 64 hexadecimal digits there.
fn container(groups: &str) -> Option<String> {
    let is_name = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = groups.split(['/', '-', '.', ':', '\n']);
    words.rfind(is_name).map(|name| name[..12].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_in_control_groups() {
        let name = "3f4a".repeat(16);
        let short = Some("3f4a3f4a3f4a".to_owned());
        for groups in [
            format!("0::/system.slice/docker-{name}.scope\n"),
            format!("12:devices:/docker/{name}\n1:name=systemd:/docker/{name}\n"),
            format!("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{name}.scope/container\n"),
            format!("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-{name}.scope"),
        ] {
            assert_eq!(container(&groups), short, "{groups}");
        }
        assert_eq!(container("0::/user.slice/user-1000.slice/session-3.scope\n"), None);
    }

    #[test]
    fn this_process_is_ours() {
        let ours = ownership(std::process::id()).unwrap();
        assert_eq!(ours.uid, rustix::process::getuid().as_raw());
        assert!(!ours.command.is_empty());
        assert_eq!(ownership(u32::MAX), None);
    }
}
