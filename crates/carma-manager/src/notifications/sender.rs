//! Sends a message: a process of the user, under a shim that leaves nothing of it behind.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carma_core::{AttemptId, JobId};

use super::delivery::DELIVERED;
use super::message::{Message, one_line};
use crate::attempt::{Order, RunAs};
use crate::launch::{CHECKPOINT_SIGNAL, HELPER_LIMITS, HelperFolders, HelperOutput, NotLaunched, Plan, run_as, run_helper};
use crate::request::Owner;
use crate::supervise::{AttemptFolder, LaunchServer};

/// The time limit of a message.
const LIMIT: Duration = Duration::from_secs(30);
/// The most output that is kept, in bytes.
const MAX_ANSWER: u64 = 64 << 10;
/// The longest error message, in characters.
const MAX_REASON: usize = 300;
/// The default `PATH` of users.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The variables that name proxies.
const PROXIES: [&str; 8] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Sends messages.
#[derive(Debug)]
pub(super) struct MessageSender {
    program: PathBuf,
    launch_server: Arc<LaunchServer>,
    /// Every message in flight has one.
    folders: HelperFolders,
}

impl MessageSender {
    /// Messages that an earlier manager left in flight are ended and sent again.
    pub(super) fn new(program: PathBuf, launch_server: Arc<LaunchServer>, folder: PathBuf) -> Self {
        Self { program, launch_server, folders: HelperFolders::new(folder) }
    }

    /// Sends a message to a user. The error has no secret in it.
    pub(super) fn deliver(&self, owner: &Owner, message: &Message) -> Result<(), String> {
        read(&self.folders.with_new(|folder| self.run(owner, message, folder))?)
    }

    fn run(&self, owner: &Owner, message: &Message, folder: &AttemptFolder) -> Result<HelperOutput, String> {
        let user = run_as(owner).map_err(NotLaunched::reason)?;
        let environment = environment(
            user.as_ref(),
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        );
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let order = Order {
            // It belongs to no job.
            attempt: AttemptId { job: JobId(0), number: 0 },
            command: vec![text(&self.program), "deliver".to_owned(), text(&folder.script())],
            // The process changes to the user's home itself: the manager may see another folder at that path.
            directory: "/".into(),
            environment,
            umask: None,
            user,
            output: None,
            error: None,
            log_limit: MAX_ANSWER,
            limits: HELPER_LIMITS,
            group: None,
            checkpoint_folder: None,
            checkpoint_signal: CHECKPOINT_SIGNAL,
            afterwards: None,
            lease: None,
            open_files: None,
            terminal: None,
        };
        // The message is in a file that only the user can read.
        let script = Some(serde_json::to_string(message).map_err(|error| error.to_string())?);
        run_helper(folder, Plan { order, script }, &self.launch_server, LIMIT).map_err(|error| error.to_string())
    }
}

/// The environment of the user's process: the manager's own for its own user, otherwise only what every user has.
fn environment(user: Option<&RunAs>, ours: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let Some(user) = user else { return ours.filter(|(name, _)| name != "NOTIFY_SOCKET").collect() };
    let own = [
        ("HOME", user.home.display().to_string()),
        ("USER", user.name.clone()),
        ("LOGNAME", user.name.clone()),
        ("PATH", DEFAULT_PATH.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("XDG_RUNTIME_DIR", format!("/run/user/{}", user.uid)),
    ];
    // A proxy with a password belongs to the manager's user.
    let proxies = ours.filter(|(name, value)| PROXIES.contains(&name.as_str()) && !value.contains('@'));
    own.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(proxies).collect()
}

/// Reads the result: the process prints `told`, or its error last, perhaps after the error of a program that it ran.
fn read(output: &HelperOutput) -> Result<(), String> {
    if output.output.trim_ascii() == DELIVERED.as_bytes() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.errors);
    let mut lines = errors.lines().rev().filter(|line| !line.trim().is_empty()).map(|line| line.trim_start_matches("carma: ").to_owned());
    let reason = lines.next().unwrap_or_else(|| "it ended without output".to_owned());
    let before = lines.next().map_or(String::new(), |before| format!(": {before}"));
    Err(one_line(&format!("{reason}{before}"), MAX_REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_reports_success_or_its_error() {
        let output = |output: &str, errors: &str| read(&HelperOutput { output: output.into(), errors: errors.into() });
        assert_eq!(output("told\n", "a warning"), Ok(()));
        assert_eq!(output("", "carma: answered 404 Not Found\n"), Err("answered 404 Not Found".to_owned()));
        let shell = output("", "x\nsh: 1: beep: not found\ncarma: sh: exit status: 127\n");
        assert_eq!(shell, Err("sh: exit status: 127: sh: 1: beep: not found".to_owned()));
        assert_eq!(output("", " \n"), Err("it ended without output".to_owned()));
        assert_eq!(output("untold", &"x".repeat(9999)).unwrap_err().chars().count(), MAX_REASON);
    }

    #[test]
    fn another_user_gets_nothing_of_the_managers_environment() {
        let user = RunAs { uid: 7, gid: 7, name: "ada".to_owned(), home: "/home/ada".into() };
        let ours = [
            ("PATH", "/ours"),
            ("CARMA_TOKEN", "secret"),
            ("NOTIFY_SOCKET", "x"),
            ("https_proxy", "http://p:1"),
            ("http_proxy", "http://a:b@p:1"),
        ];
        let ours = || ours.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
        let theirs = environment(Some(&user), ours());
        let got = |name: &str| theirs.get(name).map(String::as_str);
        assert_eq!([got("HOME"), got("PATH"), got("https_proxy")], [Some("/home/ada"), Some(DEFAULT_PATH), Some("http://p:1")]);
        assert_eq!([got("CARMA_TOKEN"), got("http_proxy"), got("NOTIFY_SOCKET")], [None; 3]);
        let own = environment(None, ours());
        assert_eq!((own.get("PATH").map(String::as_str), own.contains_key("NOTIFY_SOCKET")), (Some("/ours"), false));
    }
}
