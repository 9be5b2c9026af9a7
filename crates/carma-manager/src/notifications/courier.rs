//! Whoever brings a message: a process of the user's own, under a shim that lets nothing of it stay.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carma_core::{AttemptId, JobId};

use super::delivery::TOLD;
use super::message::{Message, one_line};
use crate::attempt::{Order, RunAs};
use crate::engine::{NotLaunched, run_as};
use crate::launch::{Aside, AsideFolders, CHECKPOINT_SIGNAL, Plan, run_aside};
use crate::request::Owner;
use crate::supervise::AttemptFolder;

/// A message takes at most so long.
const LIMIT: Duration = Duration::from_secs(30);
/// The most that is kept of what is said meanwhile.
const LONGEST_ANSWER: u64 = 64 << 10;
/// So many letters of what went wrong are told.
const LONGEST_REASON: usize = 300;
/// What users find programs by who have said nothing else.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How the network is reached from here.
const PROXIES: [&str; 8] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// What all messages have in common.
#[derive(Debug)]
pub(super) struct Courier {
    program: PathBuf,
    /// Every message has one while it is on its way.
    folders: AsideFolders,
}

impl Courier {
    /// What a manager before us has left on its way is ended, and sent again.
    pub(super) fn new(program: PathBuf, folder: PathBuf) -> Self {
        Self { program, folders: AsideFolders::new(folder) }
    }

    /// Tells a user. The error is for people, and has no secret in it.
    pub(super) fn deliver(&self, owner: &Owner, message: &Message) -> Result<(), String> {
        read(&self.folders.with_new(|folder| self.run(owner, message, folder))?)
    }

    fn run(&self, owner: &Owner, message: &Message, folder: &AttemptFolder) -> Result<Aside, String> {
        let user = run_as(owner).map_err(NotLaunched::reason)?;
        let environment = environment(
            user.as_ref(),
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        );
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let order = Order {
            // It is no job's.
            attempt: AttemptId { job: JobId(0), number: 0 },
            command: vec![text(&self.program), "deliver".to_owned(), text(&folder.script())],
            // The user goes home themselves: what we see of that folder may be something else.
            directory: "/".into(),
            environment,
            user,
            output: None,
            error: None,
            log_limit: LONGEST_ANSWER,
            checkpoint_signal: CHECKPOINT_SIGNAL,
            afterwards: None,
            open_files: None,
            terminal: None,
        };
        // The message is in a file that is the user's alone.
        let script = Some(serde_json::to_string(message).map_err(|error| error.to_string())?);
        run_aside(folder, &Plan { order, script, checkpoints: None }, &self.program, LIMIT).map_err(|error| error.to_string())
    }
}

/// What the user's process has in its environment: ours where we are the user, and else only what every user has.
fn environment(user: Option<&RunAs>, ours: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let Some(user) = user else { return ours.filter(|(name, _)| name != "NOTIFY_SOCKET").collect() };
    let own = [
        ("HOME", user.home.display().to_string()),
        ("USER", user.name.clone()),
        ("LOGNAME", user.name.clone()),
        ("PATH", USUAL_PATH.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("XDG_RUNTIME_DIR", format!("/run/user/{}", user.uid)),
    ];
    // One with a password in it is not theirs.
    let proxies = ours.filter(|(name, value)| PROXIES.contains(&name.as_str()) && !value.contains('@'));
    own.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(proxies).collect()
}

/// Who has told says so; who has not says why last, and before it perhaps whoever they have asked.
fn read(said: &Aside) -> Result<(), String> {
    if said.output.trim_ascii() == TOLD.as_bytes() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&said.errors);
    let mut lines = errors.lines().rev().filter(|line| !line.trim().is_empty()).map(|line| line.trim_start_matches("carma: ").to_owned());
    let reason = lines.next().unwrap_or_else(|| "it ended without a word".to_owned());
    let before = lines.next().map_or(String::new(), |before| format!(": {before}"));
    Err(one_line(&format!("{reason}{before}"), LONGEST_REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_told_says_so_and_who_has_not_says_why() {
        let said = |output: &str, errors: &str| read(&Aside { output: output.into(), errors: errors.into() });
        assert_eq!(said("told\n", "a warning"), Ok(()));
        assert_eq!(said("", "carma: answered 404 Not Found\n"), Err("answered 404 Not Found".to_owned()));
        let shell = said("", "x\nsh: 1: beep: not found\ncarma: sh: exit status: 127\n");
        assert_eq!(shell, Err("sh: exit status: 127: sh: 1: beep: not found".to_owned()));
        assert_eq!(said("", " \n"), Err("it ended without a word".to_owned()));
        assert_eq!(said("untold", &"x".repeat(9999)).unwrap_err().chars().count(), LONGEST_REASON);
    }

    #[test]
    fn another_user_gets_nothing_of_ours() {
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
        assert_eq!([got("HOME"), got("PATH"), got("https_proxy")], [Some("/home/ada"), Some(USUAL_PATH), Some("http://p:1")]);
        assert_eq!([got("CARMA_TOKEN"), got("http_proxy"), got("NOTIFY_SOCKET")], [None; 3]);
        let own = environment(None, ours());
        assert_eq!((own.get("PATH").map(String::as_str), own.contains_key("NOTIFY_SOCKET")), (Some("/ours"), false));
    }
}
