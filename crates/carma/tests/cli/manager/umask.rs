//! A job keeps the umask of the shell that submitted it.

use std::fs;
use std::process::Command;

use carma_core::JobId;

use super::lab::program;
use super::up::ManagerProcess;

#[test]
fn a_job_keeps_the_umask_of_its_submitter() {
    let up = ManagerProcess::new(None, "");
    let mut submit = Command::new("sh");
    submit.args(["-c", "umask 0007; exec \"$@\"", "sh"]).arg(program());
    submit.args(["submit", "--quiet", "--gpus", "0", "--", "sh", "-c", "umask"]);
    let output = submit.env("CARMA_SOCKET", up.places().socket).current_dir(up.folder()).output().unwrap();
    let job = JobId(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap());
    let detail = up.wait_until_done(job);
    assert_eq!(detail.request.umask.map(|umask| umask.to_string()).as_deref(), Some("0007"));
    assert_eq!(fs::read_to_string(up.state().join(format!("attempts/{}/1/stdout.log", job.0))).unwrap(), "0007\n");
}
