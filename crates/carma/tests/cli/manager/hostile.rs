//! Users cannot delay other jobs or stop the manager through their own files.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carma_core::{JobId, Outcome};
use carma_manager::supervise::{AttemptState, find};
use carma_testing::{Missing, need};

use super::lab::{Killed, until};
use super::security::{ADA, BOB, SharedManager};

/// Takes leases on files as their owner, and ignores that they are to end: the kernel makes others wait for 45 s for each.
const LEASES: &str = r#"$SIG{IO} = "IGNORE"; my ($setlease, $write) = (1024, 1);
for (@ARGV) { open(my $file, "+<", $_) or die $!; push @held, $file; 1 until fcntl($file, $setlease, $write); }
$| = 1; print "taken"; sleep"#;

fn logs(manager: &SharedManager, job: JobId) -> [String; 2] {
    ["stdout.log", "stderr.log"].map(|name| manager.0.state().join(format!("attempts/{}/1/{name}", job.0)).display().to_string())
}

#[test]
fn a_lease_on_a_progress_file_does_not_delay_the_manager_or_the_end_of_a_job() {
    let mut manager = need!(SharedManager::start());
    let gate = manager.shared_folder().join("gate");
    let job = manager.submits(ADA, &["--", "sh", "-c", &format!("until test -e {}; do sleep 0.02; done", gate.display())]);
    manager.runs(job);
    // The job ends without a manager, so that its files are read when the next one starts.
    manager.0.kill();
    fs::write(&gate, "").unwrap();
    let folder = manager.0.attempts().remove(0);
    until(|| matches!(find(&folder), Ok(AttemptState::Ended(_))).then_some(()));
    let mut holder = Command::new("setpriv");
    holder.args(["--reuid", "1", "--regid", "1", "--clear-groups", "--", "perl", "-e", LEASES]).arg(folder.progress());
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
    let job = manager.submits(ADA, &["--", "echo", "output"]);
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

#[test]
fn a_user_cannot_open_the_logs_and_reads_them_through_the_manager() {
    let manager = need!(SharedManager::start());
    let job = manager.submits(ADA, &["--", "sh", "-c", "echo output; echo error >&2"]);
    manager.0.wait_until_done(job);
    for log in logs(&manager, job) {
        let data = fs::metadata(&log).unwrap();
        assert_eq!((data.uid(), data.mode() & 0o777), (0, 0o600), "{log}");
    }
    let output = manager.run_as(ADA, &["logs", "--stdout", &job.0.to_string()]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "output\n");
}

#[test]
fn the_oldest_logs_of_a_user_go_when_they_take_too_much_space() {
    const SIZE: u64 = 1_700_000;
    let mut manager = need!(SharedManager::start_with(None, "[manager.logs]\nsize = 2\nsize_per_user = 10\n"));
    let write = |user| {
        let job = manager.submits(user, &["--", "sh", "-c", &format!("head -c {SIZE} /dev/zero | tr '\\0' x")]);
        assert_eq!(manager.0.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
        job
    };
    let of_bob = write(BOB);
    let [oldest, second, third, others @ ..] = [ADA; 7].map(write);
    // The next manager counts and removes at its start.
    manager.0.kill();
    manager.0.start();
    let size = |job: JobId| fs::metadata(&logs(&manager, job)[0]).unwrap().len();
    until(|| [oldest, second, third].iter().all(|job| size(*job) < SIZE).then_some(()));
    assert_eq!((others.map(size), size(of_bob)), ([SIZE; 4], SIZE), "three quarters of 10 MiB stay, and all logs of others");
    until(|| manager.0.log_text().contains("those of the 3 oldest attempts are removed").then_some(()));
    let shown = manager.run_as(ADA, &["logs", &oldest.0.to_string()]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.starts_with("[carma: this log was removed: the logs of its user take more space"), "{text}");
}

#[test]
fn folders_of_a_user_are_emptied_with_the_users_rights_and_never_beyond() {
    let mut manager = need!(SharedManager::start());
    manager.0.kill();
    let secret = manager.0.folder().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("file"), "kept").unwrap();
    // The folder of a job that the store no longer has.
    let checkpoint = manager.0.state().join("attempts/99/checkpoint");
    fs::create_dir_all(&checkpoint).unwrap();
    fs::set_permissions(manager.0.state().join("attempts"), Permissions::from_mode(0o711)).unwrap();
    chown(&checkpoint, Some(ADA), Some(ADA)).unwrap();
    let made = Command::new("setpriv")
        .args(["--reuid", "1", "--regid", "1", "--clear-groups", "--", "sh", "-c"])
        .arg(
            "ln -s \"$0\" link; mkfifo pipe; truncate -s 8T sparse; echo x > twin; ln twin other; mkdir closed; touch closed/file; chmod 0 closed
            for i in $(seq 300); do mkdir deep && cd deep; done",
        )
        .arg(&secret)
        .current_dir(&checkpoint)
        .status();
    assert!(made.unwrap().success());
    // A container may leave files of root.
    fs::create_dir(checkpoint.join("of_root")).unwrap();
    fs::write(checkpoint.join("of_root/file"), "").unwrap();
    let task = format!("{{\"Empty\":\"{}\"}}", checkpoint.display());
    assert!(!manager.run_as(BOB, &["user-task", &task]).status.success(), "another user cannot");
    assert!(checkpoint.join("twin").exists());
    manager.0.start();
    until(|| (!manager.0.state().join("attempts/99").exists()).then_some(()));
    assert_eq!(fs::read_to_string(secret.join("file")).unwrap(), "kept");
}

#[test]
fn a_foreign_mount_in_a_users_folder_is_not_entered() {
    let mut manager = need!(SharedManager::start());
    manager.0.kill();
    let checkpoint = manager.0.state().join("attempts/99/checkpoint");
    let (mounted, other) = (checkpoint.join("mounted"), manager.0.folder().join("other"));
    for folder in [&mounted, &other] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(other.join("file"), "kept").unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&mounted).output().unwrap();
    need!(if mount.status.success() { Ok(()) } else { Err(Missing::Mounts) });
    fs::write(mounted.join("file"), "kept").unwrap();
    manager.0.start();
    // Everything else works, and the folder stays.
    let job = manager.submits(BOB, &["--", "true"]);
    assert_eq!(manager.0.wait_until_done(job).outcome(), Some(&Outcome::Succeeded));
    let kept = fs::read_to_string(mounted.join("file"));
    assert!(Command::new("umount").arg(&mounted).status().unwrap().success());
    assert_eq!(kept.unwrap(), "kept");
}
