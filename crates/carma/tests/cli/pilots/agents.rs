//! Agents that die, hang, are replaced, or are not ours.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use carma_testing::need;
use carma_testing::slurm::Options;

use super::lab::{Lab, is_alive, program, signal};

fn parent(pid: u32) -> u32 {
    fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn jobs_of_a_killed_agent_end_and_start_again() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    let agents = lab.agents();
    assert_eq!(agents.len(), 1);
    let folder = std::env::temp_dir().join(format!("{}-{}", lab.servers()[0]["pilot"].as_str().unwrap(), agents[0]));
    assert!(folder.join("agent.lock").exists());
    // The shim is the parent of the job, the guard that of the shim, and the launch server that of the guard.
    let server = parent(parent(parent(process)));
    assert_eq!(parent(server), agents[0]);
    signal(agents[0], "KILL");
    lab.until("its job dies with it", || !is_alive(process));
    lab.until("its launch server dies with it", || !is_alive(server));
    assert!(lab.starts(job).len() == 1, "and is not put back before the lease has run out");
    assert_eq!(lab.finished(job), 2);
    let shown = lab.text(&["show", &job.to_string()]);
    assert!(shown.contains("its server was lost"), "{shown}");
    lab.until("the next agent removes its folder", || !folder.exists());
}

#[test]
fn jobs_of_a_killed_agent_end_also_without_their_guards() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    let guard = parent(parent(process));
    signal(guard, "KILL");
    lab.until("the guard is gone", || !is_alive(guard));
    assert!(is_alive(process), "the shim goes on");
    signal(lab.agents()[0], "KILL");
    lab.until("its job dies with it", || !is_alive(process));
    assert_eq!(lab.finished(job), 2);
}

#[test]
fn a_pilot_on_the_gpus_of_a_killed_agent_waits_for_the_lease() {
    // Its successor gets the same GPUs, as there are no others.
    let lab = need!(Lab::with(&Options::of(1, 2)));
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    lab.started(job, 1);
    let next = lab.submit(&["--gpus", "2", "--exclusive"], "true");
    lab.until("another pilot waits for room", || lab.pilots().len() == 2);
    signal(lab.agents()[0], "KILL");
    lab.until("its agent waits", || lab.report().contains("does not accept this server yet"));
    assert_eq!((lab.finished(job), lab.finished(next)), (2, 1));
    assert_eq!(lab.json(&["pool", "show", "gpu"])["failures"], 0, "it did not fail");
}

#[test]
fn an_agent_that_is_stopped_beyond_its_lease_loses_its_jobs_and_is_refused() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    lab.text(&["pool", "pause", "gpu"]);
    // Without a pilot, Slurm does not end it.
    let mut agent = joins(&lab, "gn1");
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    signal(agent.id(), "STOP");
    lab.until("its guard ends the job", || !is_alive(process));
    lab.until("its server is given up", || lab.servers().is_empty());
    lab.text(&["pool", "resume", "gpu"]);
    assert_eq!(lab.finished(job), 2);
    signal(agent.id(), "CONT");
    assert!(!agent.wait().unwrap().success(), "it is refused");
}

#[test]
fn a_pilot_whose_agent_is_stopped_is_cancelled() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    let agent = lab.agents()[0];
    signal(agent, "STOP");
    lab.until("its guard ends the job", || !is_alive(process));
    assert_eq!(lab.finished(job), 2);
    lab.until("Slurm ends the pilot", || !is_alive(agent));
}

#[test]
fn the_terminal_of_a_job_on_a_pilot_is_reached_through_the_manager() {
    need!(carma_testing::program("script"));
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let mut terminal = lab.cluster.command("script");
    terminal.env("CARMA_SOCKET", lab.state().join("carma.sock")).env("TERM", "dumb");
    let command = format!("{} submit --interactive --mem 1GiB --workdir /tmp -- bash --norc", program().display());
    terminal.args(["-q", "-e", "-c", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    lab.until("the job runs", || lab.servers().iter().any(|server| server["jobs"] == 1));
    thread::sleep(Duration::from_secs(2));
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(b"echo sum $((40 + 2))\nexit 7\n").unwrap();
    let output = terminal.wait_with_output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(screen.contains("sum 42"), "{screen}");
    assert_eq!(output.status.code(), Some(7), "{screen}");
    drop(keyboard);
}

/// An agent that is started by hand.
fn joins(lab: &Lab, node: &str) -> Child {
    let mut agent = lab.cluster.command(program());
    agent.args(["agent", "--state"]).arg(lab.state()).env("CARMA_EMU", lab.cluster.folder().join(format!("emu-{node}")));
    agent.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_pilot_that_is_started_twice_is_fenced() {
    let lab = need!(Lab::new());
    lab.pool(&["--", "-w", "gn0"]);
    let job = lab.submit(&[], "test $CARMA_ATTEMPT = 1 && sleep 600; true");
    let process = lab.started(job, 1);
    let first = lab.agents()[0];
    // A second agent with the same name, as after a crash of Slurm's controller.
    let pilot = lab.servers()[0]["pilot"].as_str().unwrap().to_owned();
    let mut second = lab.cluster.command("sh");
    second.arg(lab.state().join("pilots").join(format!("{pilot}.sh"))).env("SLURMD_NODENAME", "gn0").stderr(Stdio::null());
    let mut second = second.spawn().unwrap();
    lab.until("the first agent ends", || !is_alive(first));
    assert!(!is_alive(process), "and its job with it");
    assert_eq!(lab.finished(job), 2, "the job never runs twice at once");
    let _ = second.kill();
    second.wait().unwrap();
}

#[test]
fn an_agent_without_the_secret_is_refused() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 600");
    lab.started(job, 1);
    let file: serde_json::Value = serde_json::from_slice(&fs::read(lab.state().join("agents.json")).unwrap()).unwrap();
    let address = file["addresses"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    let other = lab.cluster.folder().join("other.secret");
    fs::write(&other, "00".repeat(32)).unwrap();
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut stranger = lab.cluster.command(program());
    stranger.args(["agent", "--no-gpus", "--manager", &address, "--secret"]).arg(&other);
    let mut stranger = stranger.stderr(Stdio::piped()).spawn().unwrap();
    // Neither random bytes nor a plain request get an answer.
    let long = vec![0xff; 70_000];
    for words in [&b"GET /v1/status HTTP/1.1\r\n\r\n"[..], &[0, 48], &long] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stream.write_all(words);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
    thread::sleep(Duration::from_secs(1));
    assert_eq!(lab.servers().len(), 1);
    stranger.kill().unwrap();
    let mut words = String::new();
    stranger.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    stranger.wait().unwrap();
    assert!(words.contains("has another secret"), "{words}");
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let refused =
        lab.cluster.command(program()).args(["agent", "--no-gpus", "--manager", &address, "--secret"]).arg(&other).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("others can read the secret"), "{refused:?}");
}

#[test]
fn an_agent_without_a_pilot_adds_its_server() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    lab.text(&["pool", "pause", "gpu"]);
    let job = lab.submit(&[], "echo here; sleep 1");
    let mut agent = joins(&lab, "gn1");
    assert_eq!(lab.finished(job), 1);
    assert!(lab.pilots().is_empty());
    signal(agent.id(), "TERM");
    assert!(agent.wait().unwrap().success());
    lab.until("its server was lost", || lab.servers().is_empty());
}
