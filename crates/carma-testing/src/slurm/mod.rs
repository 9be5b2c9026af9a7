//! A whole Slurm in one temporary folder: munged, the controller and any number of nodes on this machine.
//!
//! Works as root and as a plain user, and writes nothing to /etc, /run and /var. Every cluster has its own ports, so tests run in parallel. Everything
//! ends with the [`Cluster`], also the processes of its jobs, also when the test process is killed.
//!
//! ```no_run
//! # fn main() {
//! use carma_testing::slurm::{Cluster, Options};
//! let cluster = carma_testing::need!(Cluster::start(&Options::of(3, 4)));
//! let job = cluster.sbatch(["--gres=gpu:1", "--wrap", "sleep 60"]);
//! cluster.wait_for(|cluster| cluster.state(job) == "RUNNING");
//! # }
//! ```

mod daemon;
mod files;
mod options;
mod ports;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use self::daemon::{Cleaner, Daemon, words_of};
pub use self::options::Options;
use self::ports::Ports;
use self::programs::{control_groups, installed, munged, path};
use crate::Missing;

/// A state that a test waits for comes within this time, or the test fails.
const STATE_TIMEOUT: Duration = Duration::from_secs(30);

/// A running Slurm.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    conf: PathBuf,
    names: Vec<String>,
    ports: Ports,
    // Dropped in this order: the nodes first, and munged after all who ask it.
    nodes: BTreeMap<String, Daemon>,
    controller: Option<Daemon>,
    _munged: Daemon,
    _cleaner: Cleaner,
}

impl Cluster {
    /// Starts a cluster, and waits until all nodes are idle: about a second.
    ///
    /// # Panics
    ///
    /// Panics if Slurm is installed and does not start.
    pub fn start(options: &Options) -> Result<Self, Missing> {
        for program in ["munged", "slurmctld", "slurmd", "sbatch"] {
            installed(program)?;
        }
        if options.control_groups {
            control_groups()?;
        }
        Ok(Self::started(options).unwrap_or_else(|error| panic!("cannot start Slurm: {error}")))
    }

    fn started(options: &Options) -> io::Result<Self> {
        let ports = Ports::find(options.nodes);
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir()?.keep();
        // Control groups of jobs are named after nodes, for the whole machine.
        let unique = options.control_groups.then(|| format!("gn{}x", ports.controller));
        // From here on the folder is removed whatever happens.
        let cleaner = Cleaner::start(&folder, unique.as_deref())?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        let prefix = unique.as_deref().unwrap_or("gn");
        let names: Vec<String> = (0..options.nodes).map(|node| format!("{prefix}{node}")).collect();
        let conf = files::write(&folder, options, &names, &ports)?;
        let munged = munged(&folder)?;
        let (nodes, controller) = (BTreeMap::new(), None);
        let mut cluster = Self { folder, conf, names, ports, nodes, controller, _munged: munged, _cleaner: cleaner };
        wait_until(|| cluster.folder.join("munge.sock").exists(), || cluster.complaint("munged does not start"));
        cluster.launch_controller();
        for name in cluster.names.clone() {
            fs::create_dir(cluster.folder.join("spool").join(&name))?;
            cluster.start_node(&name);
        }
        cluster.answers();
        let count = cluster.names.len();
        // A node of several partitions has several lines.
        let idle = |cluster: &Self| cluster.lines("sinfo", ["-h", "-N", "-t", "idle", "-o", "%N"]).into_iter().collect::<BTreeSet<_>>();
        cluster.wait_for(|cluster| idle(cluster).len() == count);
        Ok(cluster)
    }

    /// The value of `SLURM_CONF`.
    pub fn conf(&self) -> &Path {
        &self.conf
    }

    /// The temporary folder, open to all users, which is removed with the cluster.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all nodes.
    pub fn nodes(&self) -> &[String] {
        &self.names
    }

    /// A command that meets this cluster: with its `SLURM_CONF`, a PATH with Slurm's programs, and no variables of a job around the test.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &self.conf).env("PATH", path());
        let foreign = |name: &OsString| {
            let name = name.to_string_lossy();
            ["SLURM", "SBATCH_", "SQUEUE_", "SALLOC_", "SCANCEL_"].iter().any(|start| name.starts_with(start)) && name != "SLURM_CONF"
        };
        for name in env::vars_os().map(|(name, _)| name).filter(foreign) {
            command.env_remove(name);
        }
        command
    }

    /// Runs a program of Slurm, whatever comes of it.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started.
    pub fn output<A: AsRef<OsStr>>(&self, program: &str, arguments: impl IntoIterator<Item = A>) -> Output {
        self.command(program).args(arguments).output().unwrap_or_else(|error| panic!("cannot run {program}: {error}"))
    }

    /// The lines that a program of Slurm prints; none if it fails.
    pub fn lines<A: AsRef<OsStr>>(&self, program: &str, arguments: impl IntoIterator<Item = A>) -> Vec<String> {
        let output = self.output(program, arguments);
        let text = if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() };
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The lines of `squeue`, without its heading.
    pub fn squeue<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Vec<String> {
        let heading = OsString::from("-h");
        self.lines("squeue", std::iter::once(heading).chain(arguments.into_iter().map(|argument| argument.as_ref().to_owned())))
    }

    /// Submits a job. Its output goes to the cluster's folder unless the arguments say otherwise.
    ///
    /// # Panics
    ///
    /// Panics if Slurm refuses it.
    pub fn sbatch<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> u32 {
        let output = self.folder.join("%j.out");
        let output = self.command("sbatch").arg("--parsable").arg("-o").arg(output).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("cannot run sbatch: {error}"));
        let id = String::from_utf8_lossy(&output.stdout).trim().parse();
        id.unwrap_or_else(|_| panic!("sbatch: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// What a job of [`sbatch`](Self::sbatch) has printed.
    pub fn printed(&self, job: u32) -> String {
        fs::read_to_string(self.folder.join(format!("{job}.out"))).unwrap_or_default()
    }

    /// The state of a job, such as `RUNNING`; empty if Slurm does not know it or does not answer.
    pub fn state(&self, job: u32) -> String {
        self.squeue(["-t", "all", "-j", &job.to_string(), "-o", "%T"]).pop().unwrap_or_default()
    }

    /// Waits until something is so.
    ///
    /// # Panics
    ///
    /// Panics after half a minute.
    pub fn wait_for(&self, is_so: impl Fn(&Self) -> bool) {
        wait_until(|| is_so(self), || self.complaint("the state was not reached in time"));
    }

    /// Kills the controller, as a crash does.
    pub fn kill_controller(&mut self) {
        self.controller = None;
    }

    /// Starts the controller again, and waits until it answers.
    ///
    /// # Panics
    ///
    /// Panics if it does not answer.
    pub fn start_controller(&mut self) {
        self.launch_controller();
        self.answers();
    }

    /// Stops the controller, as a hang does.
    pub fn pause_controller(&self) {
        self.controller.iter().for_each(|controller| controller.signal(Signal::STOP));
    }

    /// Continues a paused controller.
    pub fn continue_controller(&self) {
        self.controller.iter().for_each(|controller| controller.signal(Signal::CONT));
    }

    /// Kills the daemon of a node. Its jobs continue.
    pub fn kill_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Starts the daemon of a node again.
    ///
    /// # Panics
    ///
    /// Panics if there is no such node, or it does not start.
    pub fn start_node(&mut self, name: &str) {
        let index = self.names.iter().position(|node| node == name).unwrap_or_else(|| panic!("no node is called {name}"));
        let mut command = self.command("slurmd");
        command.args(["-D", "-N", name]).arg("-f").arg(&self.conf);
        let daemon = self.daemon(command, &format!("{name}.words"));
        self.nodes.insert(name.to_owned(), daemon);
        self.listens(self.ports.node(index));
    }

    fn launch_controller(&mut self) {
        let mut command = self.command("slurmctld");
        command.arg("-D").arg("-f").arg(&self.conf);
        self.controller = Some(self.daemon(command, "controller.words"));
    }

    fn daemon(&self, command: Command, words: &str) -> Daemon {
        let daemon = Daemon::start(command, &self.folder.join("log").join(words));
        daemon.unwrap_or_else(|error| panic!("cannot start a daemon: {error}"))
    }

    /// Waits until the controller answers. Clients wait for seconds for one that does not listen, so they are not asked before.
    fn answers(&mut self) {
        self.listens(self.ports.controller);
        let ended = self.controller.as_mut().is_none_or(Daemon::has_ended);
        assert!(!ended, "{}", self.complaint("the controller has ended"));
        wait_until(|| self.output("squeue", ["-h"]).status.success(), || self.complaint("the controller does not answer"));
    }

    fn listens(&self, port: u16) {
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        wait_until(listens, || self.complaint(&format!("nothing listens at port {port}")));
    }

    fn complaint(&self, what: &str) -> String {
        format!("{what}\n{}", words_of(&self.folder.join("log")))
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool, complaint: impl Fn() -> String) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < STATE_TIMEOUT, "{}", complaint());
        thread::sleep(Duration::from_millis(20));
    }
}
