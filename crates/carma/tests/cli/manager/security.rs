//! One manager for several users: jobs stay private, and texts of users are never executed.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use carma_core::{JobId, Outcome, State};
use carma_manager::request::HIDDEN;
use carma_manager::supervise::AttemptFolder;
use carma_testing::{Missing, as_nobody, need};

use super::crash::supervisors;
use super::lab::{program, until};
use super::up::{Gpus, ManagerProcess};

/// Two users that every Debian has.
pub(super) const ADA: u32 = 1;
pub(super) const BOB: u32 = 65_534;

/// Root's manager and its users.
pub(super) struct SharedManager(pub(super) ManagerProcess);

impl SharedManager {
    /// One without GPUs, where the tests can act as other users.
    pub(super) fn start() -> Result<Self, Missing> {
        Self::start_with(None, "")
    }

    /// The same with emulated GPUs and this configuration.
    pub(super) fn start_with(gpus: Gpus<'_>, configuration: &str) -> Result<Self, Missing> {
        as_nobody(program())?;
        let up = ManagerProcess::stopped(gpus, configuration);
        fs::set_permissions(up.folder(), Permissions::from_mode(0o755)).unwrap();
        let manager = Self(up);
        fs::create_dir(manager.shared_folder()).unwrap();
        fs::set_permissions(manager.shared_folder(), Permissions::from_mode(0o1777)).unwrap();
        let Self(mut up) = manager;
        up.start();
        Ok(Self(up))
    }

    /// A folder that all users may write to.
    pub(super) fn shared_folder(&self) -> PathBuf {
        self.0.folder().join("shared_folder")
    }

    pub(super) fn run_as(&self, user: u32, words: &[&str]) -> Output {
        self.command(user, words).output().unwrap()
    }

    fn command(&self, user: u32, words: &[&str]) -> Command {
        let id = user.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(program()).args(words).current_dir(self.shared_folder());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("CARMA_SOCKET", self.0.places().socket);
        command
    }

    /// Submits a job without GPUs and returns its number.
    pub(super) fn submits(&self, user: u32, words: &[&str]) -> JobId {
        self.submits_with(user, 0, words)
    }

    /// Submits a job with this many GPUs and returns its number.
    pub(super) fn submits_with(&self, user: u32, gpus: u32, words: &[&str]) -> JobId {
        let output = self.run_as(user, &[&["submit", "--gpus", &gpus.to_string()], words].concat());
        number(&output)
    }

    /// Waits until the first attempt of a job has a shim. The manager shows the job as running before that.
    pub(super) fn runs(&self, job: JobId) {
        let detail = || self.0.client().job(&job.0.to_string()).unwrap();
        until(|| matches!(detail().state, State::Running(_)).then_some(()));
        // A job without GPUs counts as running before its supervisors exist, and a killed manager may not have started them.
        let folder = AttemptFolder::of(&self.0.state(), detail().attempts[0].attempt);
        until(|| supervisors(&folder));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number of the job that was accepted.
fn number(output: &Output) -> JobId {
    let message = text(&output.stdout);
    let number = message.split_whitespace().find_map(|word| word.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().ok());
    JobId(number.unwrap_or_else(|| panic!("{message}{}", text(&output.stderr))))
}

#[test]
fn users_cannot_read_or_change_jobs_of_others() {
    let manager = need!(SharedManager::start());
    let job =
        manager.submits(ADA, &["--env", "MESSAGE=whisper", "--env", "API_TOKEN=s3cret", "--", "sh", "-c", "echo confidential; sleep 1000"]);
    manager.runs(job);
    let number = job.0.to_string();
    for act in
        [&["cancel", &number][..], &["hold", &number], &["release", &number], &["requeue", &number], &["set", &number, "--priority", "-1"]]
    {
        let output = manager.run_as(BOB, act);
        assert!(!output.status.success(), "{act:?}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("only the job's own user and operators may"), "{act:?}: {}", text(&output.stderr));
    }
    for arguments in [&["logs", &number][..], &["attach", &number]] {
        let output = manager.run_as(BOB, arguments);
        assert!(!output.status.success() && !text(&output.stdout).contains("confidential"), "{arguments:?}");
    }
    for operate in [&["down"][..], &["drain", "0"]] {
        assert!(text(&manager.run_as(BOB, operate).stderr).contains("only operators may"), "{operate:?}");
    }
    for show in [
        &["show", &number][..],
        &["show", &number, "--json"],
        &["queue", "--json"],
        &["export", "--json"],
        &["history", "--json"],
        &["why", &number],
    ] {
        let output = manager.run_as(BOB, show);
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(!["confidential", "whisper", "MESSAGE", "s3cret"].iter().any(|word| shown.contains(word)), "{show:?}: {shown}");
    }
    assert!(matches!(manager.0.client().job(&number).unwrap().state, State::Running(_)), "it goes on");
    let own = text(&manager.run_as(ADA, &["show", &number, "--json"]).stdout);
    assert!(own.contains("confidential") && own.contains("whisper") && own.contains(HIDDEN) && !own.contains("s3cret"), "{own}");
    assert_eq!(text(&manager.run_as(ADA, &["logs", &number]).stdout), "confidential\n");
    assert!(manager.run_as(ADA, &["cancel", &number]).status.success());
    assert_eq!(manager.0.wait_until_done(job).outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn jobs_run_as_their_submitter_and_do_not_see_others() {
    let manager = need!(SharedManager::start());
    let adas = manager.submits(ADA, &["--env", "API_TOKEN=s3cret", "--", "sh", "-c", "echo confidential; echo warning >&2"]);
    assert_eq!(manager.0.wait_until_done(adas).outcome(), Some(&Outcome::Succeeded));
    let state = manager.0.state();
    let script = format!(
        "id -u; id -g; id -G\n\
         for file in order.json stdout.log stderr.log lock shim.pid; do cat {0}/attempts/{1}/1/$file && echo READ $file; done\n\
         ls {0} {0}/attempts {0}/attempts/{1} {0}/attempts/{1}/1 && echo LISTED\n\
         cat {0}/carma.db {0}/carma.db-wal && echo READ database\n\
         touch {0}/mine {0}/attempts/mine {0}/attempts/{1}/1/mine && echo WROTE\n\
         rm -f {0}/carma.sock; test -e {0}/carma.sock || echo REMOVED\n",
        state.display(),
        adas.0
    );
    let file = manager.shared_folder().join("look.sh");
    fs::write(&file, format!("#!/bin/sh\n{script}")).unwrap();
    let bobs = manager.submits(BOB, &["look.sh"]);
    let over = manager.0.wait_until_done(bobs);
    assert!(over.outcome().is_some(), "a script is reached by its user");
    let seen = text(&manager.run_as(BOB, &["logs", "--stdout", &bobs.0.to_string()]).stdout);
    assert_eq!(seen, format!("{BOB}\n{BOB}\n{BOB}\n"), "{:?}", over.outcome());
    assert_eq!(over.owner.uid, BOB);
    // The user comes from the socket, not from the request.
    let forged = r#"{"job":{"command":{"program":["true"]},"directory":"/","owner":{"uid":0,"gid":0,"name":"root"}}}"#;
    let answer = raw(&manager.0.places().socket, &post("/v1/jobs", forged.as_bytes()));
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("owner"), "{answer}");
}

#[test]
fn names_and_patterns_cannot_leave_their_folder_and_reach_no_shell() {
    let manager = need!(SharedManager::start());
    for name in ["../../x", "a\nb", "-rf", ".hidden", "a/b", "\u{1b}[2J"] {
        let output = manager.run_as(BOB, &["submit", "--gpus", "0", "--name", name, "--", "true"]);
        assert!(!output.status.success(), "{name:?} was accepted");
    }
    for pattern in ["%z", "a\nb"] {
        assert!(!manager.run_as(BOB, &["submit", "--gpus", "0", "--output", pattern, "--", "true"]).status.success(), "{pattern:?}");
    }
    let evil = "$(touch pwned)`touch pwned`;touch pwned #";
    let file = "%x-%u-%j.txt";
    let job = manager.submits(BOB, &["--name", evil, "--output", file, "--", "echo", evil]);
    assert_eq!(manager.0.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
    let printed = manager.shared_folder().join(format!("{evil}-nobody-{}.txt", job.0));
    assert_eq!(fs::read_to_string(&printed).unwrap(), format!("{evil}\n"));
    assert_eq!(fs::metadata(printed).unwrap().uid(), BOB);
    // A link out of the folder is opened with the user's own rights.
    let outside = manager.0.folder().join("outside");
    let job = manager.submits(BOB, &["--output", outside.to_str().unwrap(), "--", "true"]);
    assert!(matches!(manager.0.wait_until_done(job).outcome(), Some(Outcome::CouldNotStart { .. })));
    let link = manager.shared_folder().join("link");
    std::os::unix::fs::symlink(manager.0.log(), &link).unwrap();
    let job = manager.submits(BOB, &["--output", link.to_str().unwrap(), "--", "echo", "overwritten"]);
    assert!(matches!(manager.0.wait_until_done(job).outcome(), Some(Outcome::CouldNotStart { .. })));
    assert!(!manager.0.log_text().contains("overwritten") && !outside.exists());
    assert!(!manager.shared_folder().join("pwned").exists() && !Path::new("/pwned").exists());
}

#[test]
fn task_files_are_words_and_no_shell_looks_at_them() {
    let up = ManagerProcess::new(Some(("1xA100-40GB", 60.0)), "");
    let desk = up.folder().join("desk");
    fs::create_dir(&desk).unwrap();
    let conda = desk.join("conda");
    fs::write(&conda, "#!/bin/sh\necho 'conda() { :; }'\n").unwrap();
    fs::set_permissions(&conda, Permissions::from_mode(0o755)).unwrap();
    fs::write(desk.join("net.model"), "").unwrap();
    let submit = |environment: &str, command: &str| {
        let task = format!("# a\nconda activate {environment}\n{command}\nnet.model\nimagenet\n64\ntraining\n1\n");
        fs::write(desk.join("task.rad"), task).unwrap();
        let mut submit = Command::new(program());
        submit.args(["submit", "task.rad"]).current_dir(&desk).env("CARMA_SOCKET", up.places().socket).env("CONDA_EXE", &conda);
        let output = submit.output().unwrap();
        output.status.success().then(|| number(&output))
    };
    let printed = |job: JobId| {
        assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
        fs::read_to_string(up.state().join(format!("attempts/{}/1/stdout.log", job.0))).unwrap()
    };
    assert_eq!(printed(submit("torch", "echo 'a  b' \"c\"").unwrap()), "a  b c\n");
    // Refused, or taken literally.
    for evil in ["$(touch pwned)", "`touch pwned`", "a;touch pwned", "a && touch pwned", "a | touch pwned"] {
        if let Some(job) = submit("torch", &format!("echo {evil}")) {
            assert_eq!(printed(job), format!("{evil}\n"));
        }
        if let Some(job) = submit(evil, "true") {
            up.wait_until_done(job);
        }
    }
    assert!(!desk.join("pwned").exists());
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Sends raw bytes and reads the answer.
fn raw(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // It may be refused before all of it was sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

#[test]
fn oversized_and_malformed_requests_are_refused_and_the_manager_goes_on() {
    let up = ManagerProcess::new(None, "");
    let socket = up.places().socket;
    let status = |request: &[u8]| raw(&socket, request).split(' ').nth(1).map(str::to_owned).unwrap_or_default();
    let huge = format!(r#"{{"job":{{"command":{{"program":["{}"]}},"directory":"/"}}}}"#, "x".repeat(80 << 20));
    assert_eq!(status(&post("/v1/jobs", huge.as_bytes())), "413");
    let nested = "[".repeat(100_000);
    assert_eq!(status(&post("/v1/jobs", nested.as_bytes())), "400");
    assert_eq!(status(&post("/v1/jobs", &[0xff; 1000])), "400");
    assert_eq!(status(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)).as_bytes()).chars().next(), Some('4'));
    for path in ["/v1/jobs/../../etc/passwd", "/v1/jobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd/logs", "/v1/jobs/1%00/logs"] {
        let answered = status(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes());
        assert!(["400", "404"].contains(&answered.as_str()), "{path}: {answered}");
    }
    assert_eq!(up.wait_until_done(up.submit(up.shell_job("true"))).outcome(), Some(&Outcome::Succeeded));
}

#[test]
fn a_thousand_slow_clients_do_not_delay_others() {
    let up = ManagerProcess::new(None, "");
    let slow: Vec<UnixStream> = (0..1000)
        .map(|number| {
            let mut stream = UnixStream::connect(up.places().socket).unwrap();
            let begun: &[u8] =
                if number % 2 == 0 { b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{" } else { b"GET /v1/sta" };
            stream.write_all(begun).unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    let output = Command::new(program()).arg("status").env("CARMA_SOCKET", up.places().socket).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The slow clients are disconnected after 10 s.
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert_eq!(up.wait_until_done(up.submit(up.shell_job("true"))).outcome(), Some(&Outcome::Succeeded));
    drop(slow);
}
