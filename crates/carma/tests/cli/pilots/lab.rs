//! A Slurm cluster, a manager without GPUs of its own, and jobs that notice when they run twice at once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use carma_emu::Machine;
use carma_testing::Missing;
use carma_testing::slurm::{Cluster, Options};
use serde_json::Value;

/// The lease of agents, in seconds: jobs of a lost server are put back a second later.
const LEASE: u64 = 4;
/// Long enough for the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(90);

pub(super) struct Lab {
    pub(super) cluster: Cluster,
    manager: Option<Child>,
    state: PathBuf,
    machines: Vec<Machine>,
    speed: f64,
}

impl Lab {
    /// Three nodes of four GPUs, and a manager that runs.
    pub(super) fn new() -> Result<Self, Missing> {
        Self::with(&Options::of(3, 4))
    }

    pub(super) fn with(options: &Options) -> Result<Self, Missing> {
        Self::at_speed(options, 1.0)
    }

    /// With GPUs whose time runs this much faster.
    pub(super) fn at_speed(options: &Options, speed: f64) -> Result<Self, Missing> {
        let cluster = Cluster::start(options)?;
        let machine = |node: &String| {
            let gpus = format!("{}xA100-40GB", options.gpus).parse().unwrap();
            Machine::create(&cluster.folder().join(format!("emu-{node}")), &gpus, speed, Some(program())).unwrap()
        };
        let machines: Vec<Machine> = cluster.nodes().iter().map(machine).collect();
        let state = cluster.folder().join("carma");
        fs::create_dir(&state).unwrap();
        // A measurement has the usual lease: agents on a busy machine are late.
        let lease = if speed > 1.0 { String::new() } else { format!("[manager.agents]\nlease = {LEASE}\ngrace = 1\n") };
        fs::write(state.join("carma.toml"), lease).unwrap();
        let mut lab = Self { cluster, manager: None, state, machines, speed };
        lab.up();
        Ok(lab)
    }

    /// Starts the manager.
    pub(super) fn up(&mut self) {
        self.up_on(None);
    }

    /// Starts the manager as if on another host.
    pub(super) fn up_on(&mut self, host: Option<&str>) {
        let log = File::options().create(true).append(true).open(self.state.join("manager.log")).unwrap();
        let mut command = self.command();
        if let Some(host) = host {
            // Hosts share the folder, and one takes over when the other is silent.
            command.env("CARMA_STORE_JOURNAL", "rollback").env("CARMA_TEST_HOST", format!("{host}/boot")).env("CARMA_TEST_LEASE", "1.5");
        }
        command.args(["up", "--no-local", "--state"]).arg(&self.state).stdout(Stdio::null()).stderr(log);
        if self.speed > 1.0 {
            // It has no GPUs, and the clock of the agents.
            command.env("CARMA_EMU", self.machines[0].folder());
        }
        self.manager = Some(command.spawn().unwrap());
        until("the manager answers", || self.carma(&["status"]).status.success());
    }

    /// Kills the manager.
    pub(super) fn kill_manager(&mut self) {
        let mut manager = self.manager.take().unwrap();
        manager.kill().unwrap();
        manager.wait().unwrap();
    }

    fn command(&self) -> Command {
        let mut command = self.cluster.command(program());
        command.env("CARMA_SOCKET", self.state.join("carma.sock")).env_remove("CARMA_EMU").env("XDG_CONFIG_HOME", "/nonexistent");
        command
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// Runs a command.
    pub(super) fn carma(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// The output of a command that must succeed.
    pub(super) fn text(&self, arguments: &[&str]) -> String {
        let output = self.carma(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Adds a pool of pilots with two GPUs each, with further arguments.
    pub(super) fn pool(&self, arguments: &[&str]) {
        let setup = format!("export CARMA_EMU={}/emu-$SLURMD_NODENAME", self.cluster.folder().display());
        let all = ["pool", "add", "slurm", "gpu", "--gpus", "2", "--mem", "1GiB", "--patience", "1s", "--setup", &setup];
        self.text(&[&all, arguments].concat());
    }

    /// Submits a shell script that needs one GPU. It notes its start outside of CARMA, and fails if it runs twice at once.
    pub(super) fn submit(&self, arguments: &[&str], script: &str) -> u64 {
        let folder = self.cluster.folder().display();
        let guarded = format!(
            "exec 9>{folder}/lock-$CARMA_JOB_ID; flock -n 9 || {{ echo twice $CARMA_JOB_ID >> {folder}/journal; exit 99; }}\n\
             echo start $CARMA_JOB_ID $CARMA_ATTEMPT $$ $CUDA_VISIBLE_DEVICES >> {folder}/journal\n{script}"
        );
        let command = ["--mem", "4GiB", "--workdir", "/tmp", "--", "bash", "-c", &guarded];
        let printed = self.text(&[&["submit"], arguments, &command].concat());
        printed.trim().trim_start_matches("job ").parse().unwrap()
    }

    /// Lines of the journal about a job: attempt, process, GPUs.
    pub(super) fn starts(&self, job: u64) -> Vec<(u32, u32, String)> {
        let journal = fs::read_to_string(self.cluster.folder().join("journal")).unwrap_or_default();
        assert!(!journal.contains("twice"), "a job ran twice at once:\n{journal}");
        let words = journal.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words[1] == job.to_string());
        words.map(|words| (words[2].parse().unwrap(), words[3].parse().unwrap(), words[4].to_owned())).collect()
    }

    /// The process of a job's last attempt, once it has started so often.
    pub(super) fn started(&self, job: u64, times: usize) -> u32 {
        self.until(&format!("job {job} starts {times} times"), || self.starts(job).len() >= times);
        self.starts(job)[times - 1].1
    }

    /// Waits until a job is done, and returns how often it started.
    pub(super) fn finished(&self, job: u64) -> usize {
        let waited = self.carma(&["wait", "--timeout", "90s", &job.to_string()]);
        assert!(waited.status.success(), "{}{}", String::from_utf8_lossy(&waited.stderr), self.report());
        self.starts(job).len()
    }

    pub(super) fn servers(&self) -> Vec<Value> {
        self.json(&["servers"]).as_array().unwrap().clone()
    }

    /// The processes of agents.
    pub(super) fn agents(&self) -> Vec<u32> {
        processes(&format!("--secret {}", self.state.join("agents.secret").display()))
    }

    /// Slurm's numbers of running pilots.
    pub(super) fn pilots(&self) -> Vec<String> {
        self.cluster.squeue(["-t", "PENDING,RUNNING", "-o", "%i|%j"]).into_iter().filter(|line| line.contains("|carma-")).collect()
    }

    /// Waits, and shows everything if the state is not reached in time.
    pub(super) fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        assert!(comes(is_so), "timeout: {what}\n{}", self.report());
    }

    pub(super) fn report(&self) -> String {
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let pilots = fs::read_dir(self.state.join("pilots")).into_iter().flatten().flatten().map(|entry| entry.path());
        let logs: String = pilots.filter(|path| path.extension().is_some_and(|kind| kind == "log")).map(read).collect();
        format!(
            "manager:\n{}\nagents:\n{logs}\njournal:\n{}\nqueue:\n{}\n",
            read(self.state.join("manager.log")),
            read(self.cluster.folder().join("journal")),
            self.cluster.squeue(["-t", "all"]).join("\n")
        )
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(mut manager) = self.manager.take() {
            let _ = manager.kill();
            let _ = manager.wait();
        }
    }
}

pub(super) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_carma"))
}

/// Processes whose command line has these words.
pub(super) fn processes(words: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line: Vec<u8> = line.into_iter().map(|byte| if byte == 0 { b' ' } else { byte }).collect();
        String::from_utf8_lossy(&line).contains(words) && String::from_utf8_lossy(&line).contains(" agent ")
    })
    .collect()
}

pub(super) fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub(super) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "{pid} gets no {name}");
}

fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(comes(is_so), "timeout: {what}");
}
