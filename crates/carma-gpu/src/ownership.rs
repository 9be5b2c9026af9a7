//! The user and the command of a process.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use nix::unistd::{Uid, User};
use serde::Serialize;

use crate::lane::Lane;

/// The system's record of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ownership {
    /// The number of its user.
    pub uid: u32,
    /// The user's name, if any.
    pub user: Option<String>,
    /// Its command line.
    pub command: String,
    /// The first characters of its container's name, if it runs in one.
    pub container: Option<String>,
}

/// Local data takes much less. But the command line of a process that hangs in the driver may be unreadable, and user names
/// may come over the network.
const DEADLINE: Duration = Duration::from_millis(500);

/// Readers of command lines, and of user names with a cache; none if their thread cannot start.
static COMMANDS: LazyLock<Option<Lane<()>>> = LazyLock::new(|| Lane::new("commands", || ()).ok());
static USERS: LazyLock<Option<Lane<HashMap<u32, String>>>> = LazyLock::new(|| Lane::new("users", HashMap::new).ok());

/// Looks a process up; unset if it is gone or not visible. Values that miss the deadline are left out.
pub fn ownership(pid: u32) -> Option<Ownership> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let uid = process_user(pid)?;
    let line = folder.join("cmdline");
    let command = within(COMMANDS.as_ref(), "cmdline", move |()| command(&fs::read(line).unwrap_or_default()));
    let command = match command.flatten() {
        Some(command) => command,
        None => text(&folder.join("comm"))?.trim().to_owned(),
    };
    let container = text(&folder.join("cgroup")).and_then(|groups| container(&groups));
    Some(Ownership { uid, user: known_name(uid), command, container })
}

/// A user's name, if any.
fn known_name(uid: u32) -> Option<String> {
    let name = within(USERS.as_ref(), "getpwuid", move |known| {
        if let Some(name) = known.get(&uid) {
            return Some(name.clone());
        }
        let name = User::from_uid(Uid::from_raw(uid)).ok().flatten()?.name;
        Some(known.entry(uid).or_insert(name).clone())
    });
    name.flatten()
}

/// The name of a user.
pub(crate) fn user_name(uid: u32) -> String {
    known_name(uid).unwrap_or_else(|| format!("user {uid}"))
}

/// The effective user of a process. Its folder in `/proc` may belong to root nevertheless.
pub(crate) fn process_user(pid: u32) -> Option<u32> {
    user(&text(format!("/proc/{pid}/status").as_ref())?)
}

/// The effective user in the kernel's status of a process.
fn user(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

fn within<S: 'static, T: Send + 'static>(
    lane: Option<&Lane<S>>,
    what: &'static str,
    act: impl FnOnce(&mut S) -> T + Send + 'static,
) -> Option<T> {
    lane?.call(what, DEADLINE, act).ok()
}

fn text(file: &Path) -> Option<String> {
    fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The words of a command line as the kernel keeps them; processes without any are not programs.
fn command(line: &[u8]) -> Option<String> {
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join(" "))
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
        assert_eq!(user("Name:\tpython\nUid:\t1000\t1001\t1000\t1000\nGid:\t7\t7\t7\t7\n"), Some(1001));
    }

    #[test]
    fn hanging_gpus_are_excluded() {
        let lane = Lane::new("test", || ()).ok();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        assert_eq!(within(lane.as_ref(), "hang", move |()| wait.recv().is_ok()), None);
        assert_eq!(within(lane.as_ref(), "next", |()| 7), None, "nothing waits behind it");
        drop(release);
    }
}
