//! What is killed, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_gpu::process_started;
use fastrand::Rng;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::super::lab::Lab;

/// Kinds of strikes, with how often each is chosen.
const KINDS: [(&str, u32); 9] = [
    ("manager killed", 20),
    ("manager away for less than the lease", 8),
    ("manager away for longer than the lease", 4),
    ("agent killed", 14),
    ("agent stopped", 12),
    ("pilot cancelled", 10),
    ("controller killed", 6),
    ("node daemon killed", 6),
    ("shim or guard killed", 20),
];

pub(super) struct Strikes {
    /// The folders of agents.
    local: PathBuf,
    random: Rng,
    counts: BTreeMap<&'static str, usize>,
    /// Jobs with a killed supervisor. None is struck twice: guard and shim together need control groups.
    struck: BTreeSet<u64>,
    /// Threads that continue stopped agents.
    stopped: Vec<JoinHandle<()>>,
    resumed: usize,
}

impl Strikes {
    pub(super) fn new(local: PathBuf, random: Rng) -> Self {
        Self { local, random, counts: BTreeMap::new(), struck: BTreeSet::new(), stopped: Vec::new(), resumed: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.counts.values().sum()
    }

    pub(super) fn struck(&self) -> &BTreeSet<u64> {
        &self.struck
    }

    /// Waits a moment, and strikes once, if there is something to strike.
    pub(super) fn strike(&mut self, lab: &mut Lab, begin: Instant) {
        thread::sleep(Duration::from_millis(self.random.u64(500..2500)));
        self.resume_pool(lab);
        let mut chosen = self.random.u32(0..KINDS.iter().map(|(_, weight)| weight).sum());
        let kind = KINDS.iter().find(|(_, weight)| chosen.checked_sub(*weight).map(|left| chosen = left).is_none()).unwrap().0;
        let Some(what) = self.carry_out(kind, lab) else { return };
        *self.counts.entry(kind).or_default() += 1;
        eprintln!("{:>6.1} s {:>4}: {kind} {what}", begin.elapsed().as_secs_f64(), self.count());
    }

    fn carry_out(&mut self, kind: &str, lab: &mut Lab) -> Option<String> {
        let between = |random: &mut Rng, range: std::ops::Range<u64>| Duration::from_millis(random.u64(range));
        match kind {
            "manager killed" => Some(restart(lab, Duration::ZERO)),
            "manager away for less than the lease" => Some(restart(lab, between(&mut self.random, 500..3000))),
            "manager away for longer than the lease" => Some(restart(lab, between(&mut self.random, 5000..8000))),
            "agent killed" => {
                let agent = Process::of(self.random.choice(lab.agents())?)?;
                agent.signal(Signal::KILL).then(|| agent.to_string())
            }
            // Around the length of the lease, as that is where it matters.
            "agent stopped" => {
                let agent = Process::of(self.random.choice(lab.agents())?)?;
                let pause = between(&mut self.random, 3000..8000);
                let text = format!("{agent} for {:.1} s", pause.as_secs_f64());
                agent.signal(Signal::STOP).then(|| self.stopped.push(continue_after(agent, pause)))?;
                Some(text)
            }
            "pilot cancelled" => {
                let pilot = self.random.choice(lab.pilots())?;
                lab.cluster.output("scancel", ["--name", pilot.split('|').nth(1)?]);
                Some(pilot)
            }
            "controller killed" => {
                lab.cluster.kill_controller();
                thread::sleep(between(&mut self.random, 0..1500));
                lab.cluster.start_controller();
                Some(String::new())
            }
            "node daemon killed" => {
                let node = self.random.choice(lab.cluster.nodes().to_vec())?;
                lab.cluster.kill_node(&node);
                thread::sleep(between(&mut self.random, 0..1500));
                lab.cluster.start_node(&node);
                Some(node)
            }
            _ => self.kill_supervisor(),
        }
    }

    /// Kills the shim or the guard of a random attempt.
    fn kill_supervisor(&mut self) -> Option<String> {
        let mut found = Vec::new();
        for agent in entries(&self.local) {
            for job in entries(&agent.join("attempts")) {
                found.extend(entries(&job).into_iter().filter_map(|attempt| supervisors(&attempt)));
            }
        }
        found.retain(|(job, guard, shim)| !self.struck.contains(job) && guard.is_there() && shim.is_there());
        let (job, guard, shim) = self.random.choice(found)?;
        let (name, victim) = if self.random.u32(0..3) == 0 { ("guard", guard) } else { ("shim", shim) };
        self.struck.insert(job);
        victim.signal(Signal::KILL).then(|| format!("the {name} of job {job}"))
    }

    /// A pool is paused after three pilots that ended before their agents connected, as kills can make them. People would resume it.
    pub(super) fn resume_pool(&mut self, lab: &Lab) {
        if lab.text(&["pool", "list"]).contains("paused after failures") {
            lab.text(&["pool", "resume", "gpu"]);
            self.resumed += 1;
        }
    }

    /// Waits until all stopped agents continue.
    pub(super) fn settle(&mut self) {
        self.stopped.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

impl fmt::Display for Strikes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{count} times {kind}")).collect();
        write!(formatter, "{} kills: {}; the pool was resumed {} times", self.count(), counts.join(", "), self.resumed)
    }
}

fn restart(lab: &mut Lab, pause: Duration) -> String {
    lab.kill_manager();
    thread::sleep(pause);
    lab.up();
    format!("for {:.1} s", pause.as_secs_f64())
}

fn continue_after(process: Process, pause: Duration) -> JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(pause);
        process.signal(Signal::CONT);
    })
}

/// A process, distinct from a later one with the same pid.
#[derive(Clone, Copy)]
struct Process {
    pid: u32,
    started: u64,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        process_started(pid).map(|started| Self { pid, started })
    }

    fn is_there(self) -> bool {
        process_started(self.pid) == Some(self.started)
    }

    fn signal(self, signal: Signal) -> bool {
        let handle = Pid::from_raw(self.pid.cast_signed()).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        handle.filter(|_| self.is_there()).is_some_and(|handle| pidfd_send_signal(handle, signal).is_ok())
    }
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {}", self.pid)
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Job, guard and shim of the attempt in a folder.
fn supervisors(attempt: &Path) -> Option<(u64, Process, Process)> {
    let both: serde_json::Value = serde_json::from_slice(&fs::read(attempt.join("shim.pid")).ok()?).ok()?;
    let process = |who: &str| Some(Process { pid: both[who]["pid"].as_u64()?.try_into().ok()?, started: both[who]["started"].as_u64()? });
    let job = attempt.parent()?.file_name()?.to_str()?.parse().ok()?;
    Some((job, process("guard")?, process("shim")?))
}
