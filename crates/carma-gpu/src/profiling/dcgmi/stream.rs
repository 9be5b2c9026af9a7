//! `dcgmi dmon` as a child process that is restarted whenever it ends.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::super::counters::{Counters, Unit};
use super::super::fields::{Field, profiling};
use super::super::latest::{Backoff, Latest, Status};
use super::super::problem::Problem;
use super::discovery::{gpus, instances};
use super::dmon::{Entity, Line, Monitor, Row};
use super::program::Program;

/// Counters that every GPU with profiling has. A host engine that lacks one of the fields refuses all of them.
const ESSENTIAL: std::ops::RangeInclusive<u16> = 1001..=1005;

/// A host engine that is silent for this long hangs.
const SILENCE: Duration = Duration::from_secs(30);
/// More than any list of devices needs.
const MAX_LIST: usize = 1 << 20;

/// The stream of counters of all GPUs from a DCGM host engine.
#[derive(Debug)]
pub struct Stream {
    program: Arc<Program>,
    latest: Arc<Latest>,
    /// Closed when this is dropped, which ends the thread.
    _alive: Sender<()>,
}

/// The thread that reads.
struct Reader {
    program: Arc<Program>,
    latest: Arc<Latest>,
    alive: Receiver<()>,
    interval: Duration,
    /// The wanted instances; GPUs are always in the output.
    instances: HashSet<Unit>,
}

impl Stream {
    /// Starts to read from this program, a row for each device every `interval`.
    pub fn start(program: PathBuf, interval: Duration, wanted: impl IntoIterator<Item = Unit>) -> io::Result<Self> {
        let (program, latest) = (Arc::new(Program::new(program, SILENCE + interval)), Arc::new(Latest::new()));
        let (sender, alive) = channel();
        let instances = wanted.into_iter().filter(|unit| unit.instance.is_some()).collect();
        let reader = Reader { program: Arc::clone(&program), latest: Arc::clone(&latest), alive, interval, instances };
        thread::Builder::new().name("dcgmi".to_owned()).spawn(move || reader.run())?;
        Ok(Self { program, latest, _alive: sender })
    }

    /// The latest counters of a device, unless they are too old.
    pub fn counters(&self, unit: &Unit) -> Option<Counters> {
        self.latest.counters(unit)
    }

    /// Its state.
    pub fn status(&self) -> Status {
        self.latest.status()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.program.end();
    }
}

impl Reader {
    fn run(&self) {
        let mut pauses = Backoff::new();
        let mut fields: Vec<&Field> = profiling().iter().collect();
        loop {
            self.latest.begin();
            let problem = self.read_once(&fields);
            if self.latest.status() == Status::Running {
                pauses = Backoff::new();
            }
            if matches!(problem, Problem::NotWatched(_)) {
                fields.retain(|field| ESSENTIAL.contains(&field.id));
            }
            self.latest.fail(problem);
            if self.alive.recv_timeout(pauses.next()) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Reads one run of the program, and returns why it ended.
    fn read_once(&self, fields: &[&Field]) -> Problem {
        let devices = match self.devices() {
            Ok(devices) => devices,
            Err(problem) => return problem,
        };
        let fields: Vec<String> = fields.iter().map(|field| field.id.to_string()).collect();
        let mut arguments =
            vec!["dmon".to_owned(), "-e".to_owned(), fields.join(","), "-d".to_owned(), self.interval.as_millis().to_string()];
        if !self.instances.is_empty() {
            arguments.extend(["-i".to_owned(), selection(&devices)]);
        }
        let mut monitor = Monitor::default();
        let mut problem = None;
        let ended = self.program.run(&arguments, |line| match monitor.read(line) {
            Some(Line::Row(row)) => {
                if let Some(unit) = devices.get(&row.entity) {
                    self.latest.put(unit.clone(), counters(&row));
                }
            }
            Some(Line::Problem(found)) => problem = Some(found),
            None => {}
        });
        problem.or(ended.err()).unwrap_or_else(|| Problem::Ended("no reason was given".to_owned()))
    }

    fn devices(&self) -> Result<HashMap<Entity, Unit>, Problem> {
        let mut devices: HashMap<Entity, Unit> = gpus(&self.ask("-l")?).into_iter().collect();
        if !self.instances.is_empty() {
            devices.extend(instances(&self.ask("-c")?).into_iter().filter(|(_, unit)| self.instances.contains(unit)));
        }
        Ok(devices)
    }

    fn ask(&self, which: &str) -> Result<String, Problem> {
        let mut text = String::new();
        let mut problem = None;
        let ended = self.program.run(&["discovery", which], |line| {
            problem = problem.take().or_else(|| Problem::from_line(line));
            if text.len() < MAX_LIST {
                text.extend([line, "\n"]);
            }
        });
        problem.map_or(ended, Err).map(|()| text)
    }
}

/// The devices as an argument of `dcgmi`.
fn selection(devices: &HashMap<Entity, Unit>) -> String {
    let mut entities: Vec<Entity> = devices.keys().copied().collect();
    entities.sort_unstable();
    let write = |entity| match entity {
        Entity::Gpu(number) => number.to_string(),
        Entity::Instance(number) => format!("i:{number}"),
        Entity::ComputeInstance(number) => format!("ci:{number}"),
    };
    entities.into_iter().map(write).collect::<Vec<_>>().join(",")
}

fn counters(row: &Row) -> Counters {
    let mut counters = Counters::new(Instant::now());
    for (field, value) in &row.values {
        if let Some(value) = value {
            counters.set(field, *value);
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, Utilisation};

    use super::*;

    #[test]
    fn rows_become_metrics() {
        let mut monitor = Monitor::default();
        monitor.read("#Entity   SMACT        TENSO        DRAMA");
        let Some(Line::Row(row)) = monitor.read("GPU 0     0.926        0.375        N/A") else { panic!() };
        assert_eq!(counters(&row).utilisation(), Utilisation::of([(Metric::Smact, 0.926), (Metric::Tensor, 0.375)]));
    }

    #[test]
    fn instances_are_selected_by_their_kind() {
        let unit = Unit { gpu: "GPU-1".parse().unwrap(), instance: None };
        let devices = [Entity::Instance(7), Entity::Gpu(1), Entity::Gpu(0)].map(|entity| (entity, unit.clone()));
        assert_eq!(selection(&HashMap::from(devices)), "0,1,i:7");
    }

    #[test]
    fn a_missing_program_is_reported_with_a_remedy() {
        let stream = Stream::start("/nonexistent/dcgmi".into(), Duration::from_secs(1), []).unwrap();
        let status = loop {
            match stream.status() {
                Status::Starting => thread::yield_now(),
                status => break status,
            }
        };
        let Status::Failing(problem) = status else { panic!("{status:?}") };
        assert_eq!(problem.to_string(), "/nonexistent/dcgmi is not installed");
        assert!(problem.remedy().unwrap().starts_with("apt install datacenter-gpu-manager"));
    }
}
