//! Simulations of past jobs. Each runs in its own process at low priority.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, setpriority_process};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::api::{Problem, ProblemKind, WhatIf, WhatIfQuery};
use crate::client::HOST_VARIABLE;
use crate::places::SOCKET_VARIABLE;
use crate::store::UnixMillis;

/// How long an answer is cached.
const KEPT: Duration = Duration::from_secs(60);
/// Timeout of a simulation.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The lowest priority.
const LOWEST_PRIORITY: i32 = 19;
/// The largest answer.
const MAX_ANSWER: u64 = 16 << 20;

/// Runs one simulation at a time.
#[derive(Debug)]
pub(super) struct WhatIfs {
    program: PathBuf,
    socket: PathBuf,
    longest: Duration,
    /// Locked during a simulation.
    kept: tokio::sync::Mutex<Vec<(WhatIfQuery, Instant, WhatIf)>>,
}

impl WhatIfs {
    /// Runs this program, which connects to this socket.
    pub(super) fn new(program: PathBuf, socket: PathBuf) -> Self {
        Self { program, socket, longest: TIMEOUT, kept: tokio::sync::Mutex::default() }
    }

    /// The answer. The simulation finishes even if the client disconnects.
    pub(super) async fn answer(self: &Arc<Self>, query: WhatIfQuery) -> Result<WhatIf, Problem> {
        let this = Arc::clone(self);
        tokio::spawn(async move { this.answer_in_turn(query).await }).await?
    }

    async fn answer_in_turn(&self, query: WhatIfQuery) -> Result<WhatIf, Problem> {
        let mut kept = self.kept.lock().await;
        kept.retain(|(_, since, _)| since.elapsed() < KEPT);
        if let Some((.., answer)) = kept.iter().find(|(asked, ..)| *asked == query) {
            return Ok(answer.clone());
        }
        let answer = self.simulate(&query).await?;
        kept.push((query, Instant::now(), answer.clone()));
        Ok(answer)
    }

    async fn simulate(&self, query: &WhatIfQuery) -> Result<WhatIf, Problem> {
        let internal = |error: std::io::Error| ProblemKind::Internal.because(format!("{} cannot be run: {error}", self.program.display()));
        let mut child = self.command(query).spawn().map_err(internal)?;
        // If the system refuses, it keeps the normal priority.
        let _ = setpriority_process(Pid::from_raw(child.id().cast_signed()), LOWEST_PRIORITY);
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let reading = spawn_blocking(move || [read(output), read(errors)]);
        let Ok(read) = timeout(self.longest, reading).await else {
            let ended = child.kill().and_then(|()| child.wait());
            let seconds = self.longest.as_secs();
            let problem = format!("the simulation takes longer than {seconds} s: choose a shorter period or fewer policies");
            return Err(ended.err().map_or_else(|| ProblemKind::Unavailable.because(problem), internal));
        };
        let [output, errors] = read?;
        if !child.wait().map_err(internal)?.success() {
            let errors = String::from_utf8_lossy(&errors);
            return Err(ProblemKind::Invalid.because(errors.trim().trim_start_matches("carma: ")));
        }
        serde_json::from_slice(&output).map_err(|error| ProblemKind::Internal.because(error.to_string()))
    }

    fn command(&self, query: &WhatIfQuery) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["what-if", "--json"]);
        for (flag, moment) in [("since", query.since), ("until", query.until)] {
            command.args(moment.map(|moment| format!("--{flag}={}", instant(moment))));
        }
        command.args(query.policies.as_ref().map(|policies| format!("--policy={policies}")));
        command.env_remove(HOST_VARIABLE).env(SOCKET_VARIABLE, &self.socket);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn read(from: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An incomplete answer fails to parse later.
    let _ = from.map(|from| from.take(MAX_ANSWER).read_to_end(&mut bytes));
    bytes
}

fn instant(UnixMillis(at): UnixMillis) -> String {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    /// A program that writes down what it is asked and does this.
    fn answered_by(script: &str) -> (TempDir, Arc<WhatIfs>) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, format!("#!/bin/sh\necho \"$@ $CARMA_SOCKET\" >> {}\n{script}\n", folder.path().join("asked").display()))
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let what_ifs = WhatIfs::new(program, "/run/carma.sock".into());
        (folder, Arc::new(what_ifs))
    }

    fn fate() -> String {
        r#"{"policy":"magm","makespan":1.0,"wait":0.0,"completion":1.0,"completion_p95":1.0,"energy":null,"out_of_memory":0.0}"#.to_owned()
    }

    #[tokio::test]
    async fn equal_questions_are_simulated_once() {
        let answer = format!("{{\"jobs\":3,\"left_out\":[],\"measured\":{0},\"simulated\":{0},\"others\":[]}}", fate());
        let (folder, what_ifs) = answered_by(&format!("echo '{answer}'"));
        let query =
            WhatIfQuery { since: Some(UnixMillis(1_800_000_000_000)), policies: Some("--json".to_owned()), ..WhatIfQuery::default() };
        let (first, second) = tokio::join!(what_ifs.answer(query.clone()), what_ifs.answer(query.clone()));
        assert_eq!((first.unwrap().jobs, second.unwrap().jobs), (3, 3));
        what_ifs.answer(WhatIfQuery::default()).await.unwrap();
        let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
        assert_eq!(asked, "what-if --json --since=2027-01-15T08:00:00Z --policy=--json /run/carma.sock\nwhat-if --json /run/carma.sock\n");
    }

    #[tokio::test]
    async fn errors_of_the_program_are_passed_on() {
        let (_folder, what_ifs) = answered_by("echo 'carma: unknown policy \"best\"' >&2; exit 1");
        let problem = what_ifs.answer(WhatIfQuery::default()).await.unwrap_err();
        assert_eq!((problem.kind, problem.message.as_str()), (ProblemKind::Invalid, "unknown policy \"best\""));
    }

    #[tokio::test]
    async fn a_simulation_that_takes_too_long_is_stopped() {
        let (_folder, what_ifs) = answered_by("exec sleep 1000");
        let what_ifs = Arc::new(WhatIfs { longest: Duration::from_millis(50), ..Arc::into_inner(what_ifs).unwrap() });
        let problem = what_ifs.answer(WhatIfQuery::default()).await.unwrap_err();
        assert_eq!(problem.kind, ProblemKind::Unavailable, "{problem:?}");
    }
}
