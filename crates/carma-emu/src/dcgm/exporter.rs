//! dcgm-exporter's page over the state.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use carma_gpu::profiling::dcgmi::Entity;
use carma_gpu::profiling::fields::{FIELDS, Measure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use thiserror::Error;

use super::observation::{Observation, observe};
use crate::machine::{Machine, MachineError};
use crate::state::State;

/// The least time between two observations: counters over shorter times are noise.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Ample for a request from this machine.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of checks that the machine still exists.
const POLL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const MAX_REQUEST: u64 = 16 << 10;

/// Errors that end the page.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The listener failed.
    #[error(transparent)]
    Listener(#[from] io::Error),
    /// The machine is gone.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Serves `/metrics` and `/health` over HTTP until the machine is removed.
pub fn serve(machine: &Machine, listener: &TcpListener) -> Result<(), ServeError> {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut collector = Collector { machine, hostname: hostname.trim().to_owned(), before: Vec::new(), now: Vec::new(), observed: None };
    // Counters are means between two observations.
    let _ = collector.page();
    loop {
        let asked = retry_on_intr(|| poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&POLL))).map_err(io::Error::from)?;
        if asked > 0 {
            // A client that disconnects early affects no other.
            let _ = answer(&listener.accept()?.0, &mut collector);
        }
        machine.clock()?;
    }
}

fn answer(connection: &TcpStream, collector: &mut Collector<'_>) -> io::Result<()> {
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    let mut request = BufReader::new(connection.take(MAX_REQUEST)).lines();
    let first = request.next().transpose()?.unwrap_or_default();
    while request.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => match collector.page() {
            Ok(page) => ("200 OK", page),
            Err(message) => ("500 Internal Server Error", message),
        },
        (Some("GET"), Some("/health")) => ("200 OK", "OK\n".to_owned()),
        (Some("GET"), _) => ("404 Not Found", "404 page not found\n".to_owned()),
        _ => ("405 Method Not Allowed", "Method Not Allowed\n".to_owned()),
    };
    let mut connection = connection;
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The last two observations.
struct Collector<'a> {
    machine: &'a Machine,
    hostname: String,
    before: Vec<LabelledDevice>,
    now: Vec<LabelledDevice>,
    observed: Option<Instant>,
}

/// A device with its labels.
struct LabelledDevice {
    labels: String,
    observation: Observation,
}

impl Collector<'_> {
    /// Observes again, unless that was done a moment ago, and writes the page.
    fn page(&mut self) -> Result<String, String> {
        if self.observed.is_none_or(|observed| observed.elapsed() >= MIN_INTERVAL) {
            let now = self.machine.with(|state| observed(state, &self.hostname)).map_err(|error| format!("{error}\n"))?;
            self.before = std::mem::replace(&mut self.now, now);
            self.observed = Some(Instant::now());
        }
        Ok(text(&self.now, &self.before))
    }
}

fn observed(state: &State<'_>, hostname: &str) -> Vec<LabelledDevice> {
    let labels = |observation: &Observation| {
        let place = observation.place;
        let gpu = &state.gpus[place.gpu];
        let number = place.gpu;
        let mut labels = vec![
            ("gpu", number.to_string()),
            ("UUID", gpu.uuid.get().to_owned()),
            ("pci_bus_id", gpu.bus_id()),
            ("device", format!("nvidia{number}")),
            ("modelName", state.profile(number).facts.product.clone()),
        ];
        if let Some(instance) = place.instance {
            labels.push(("GPU_I_PROFILE", state.instance_profile(number, instance).name.clone()));
            labels.push(("GPU_I_ID", gpu.instances[instance].id.to_string()));
        }
        labels.push(("Hostname", hostname.to_owned()));
        let quoted = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escaped(value));
        labels.iter().map(quoted).collect::<Vec<_>>().join(",")
    };
    let devices = observe(state).into_iter().filter(|seen| !matches!(seen.entity, Entity::ComputeInstance(_)));
    devices.map(|observation| LabelledDevice { labels: labels(&observation), observation }).collect()
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The page: fields without any value are left out.
fn text(now: &[LabelledDevice], before: &[LabelledDevice]) -> String {
    let mut page = String::new();
    for field in &FIELDS {
        let mut rows = String::new();
        for seen in now {
            let earlier = before.iter().find(|before| before.labels == seen.labels).map(|before| &before.observation);
            let Some(value) = seen.observation.value(field, earlier) else { continue };
            let _ = match field.measure {
                Measure::Fraction | Measure::Watts => writeln!(rows, "{}{{{}}} {value:.6}", field.exported_name, seen.labels),
                _ => writeln!(rows, "{}{{{}}} {value:.0}", field.exported_name, seen.labels),
            };
        }
        if !rows.is_empty() {
            let kind = if field.measure == Measure::Millijoules { "counter" } else { "gauge" };
            let _ = write!(page, "# HELP {name} {}\n# TYPE {name} {kind}\n{rows}", field.help, name = field.exported_name);
        }
    }
    page
}
