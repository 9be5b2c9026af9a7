//! What a user does with the files that are theirs delays no other job and stops no manager.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carma_core::{JobId, Outcome};
use carma_manager::supervise::{AttemptState, find};
use carma_testing::need;

use super::lab::until;
use super::security::{ADA, BOB, SharedManager};

/// Kills the process at the end of the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes leases on files as their owner, and ignores that they are to end: the kernel makes others wait for 45 s for each.
const LEASES: &str = r#"$SIG{IO} = "IGNORE"; my ($setlease, $write) = (1024, 1);
for (@ARGV) { open(my $file, "+<", $_) or die $!; push @held, $file; 1 until fcntl($file, $setlease, $write); }
$| = 1; print "taken"; sleep"#;

fn logs(manager: &SharedManager, job: JobId) -> [String; 2] {
    ["stdout.log", "stderr.log"].map(|name| manager.0.state().join(format!("attempts/{}/1/{name}", job.0)).display().to_string())
}

#[test]
fn a_lease_on_a_log_does_not_delay_the_manager_or_the_end_of_a_job() {
    let mut manager = need!(SharedManager::start());
    let gate = manager.shared_folder().join("gate");
    let job = manager.submits(ADA, &["--", "sh", "-c", &format!("until test -e {}; do sleep 0.02; done", gate.display())]);
    manager.runs(job);
    // The job ends without a manager, so that its logs are read when the next one starts.
    manager.0.kill();
    fs::write(&gate, "").unwrap();
    let folder = manager.0.attempts().remove(0);
    until(|| matches!(find(&folder), Ok(AttemptState::Ended(_))).then_some(()));
    let mut holder = Command::new("setpriv");
    holder.args(["--reuid", "1", "--regid", "1", "--clear-groups", "--", "perl", "-e", LEASES]).args(logs(&manager, job));
    let mut holder = Killed(holder.stdout(Stdio::piped()).spawn().unwrap());
    holder.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).expect("leases can be taken");
    let begin = Instant::now();
    manager.0.start();
    assert_eq!(manager.0.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
    let other = manager.submits(BOB, &["--", "true"]);
    assert_eq!(manager.0.wait_until_done(other).outcome(), Some(&Outcome::Succeeded));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn a_huge_sparse_log_does_not_delay_other_requests() {
    let manager = need!(SharedManager::start());
    let job = manager.submits(ADA, &["--", "true"]);
    manager.0.wait_until_done(job);
    File::options().write(true).open(&logs(&manager, job)[0]).unwrap().set_len(8 << 40).unwrap();
    let socket = manager.0.places().socket;
    let asked: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            let request = format!("GET /v1/jobs/{}/logs?lines=1 HTTP/1.1\r\nhost: x\r\n\r\n", job.0);
            std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    // History is read by the same threads.
    assert!(manager.run_as(BOB, &["history"]).status.success());
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    drop(asked);
}
