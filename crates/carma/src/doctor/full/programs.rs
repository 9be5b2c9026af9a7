//! NVIDIA's programs: dcgmi's stream, and an MPS daemon of our own that serves no client.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use carma_gpu::Inventory;
use carma_gpu::mps::{ClientLimits, MpsControl, knows_version_3};
use carma_gpu::profiling::dcgmi::Stream;
use carma_gpu::profiling::{Counters, Status, Unit};

use super::check::Check;

/// The interval of the stream.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long it is watched. A program that keeps its rows in a buffer shows none of them by then.
const WATCHED: Duration = Duration::from_secs(6);
/// Rows that a stream that is flushed shows by then, however slowly it starts.
const ROWS: usize = 4;

/// Whether `dcgmi dmon` writes each row at once when its output is no terminal.
pub(super) fn dcgmi(inventory: &Inventory, program: Option<PathBuf>) -> Vec<Check> {
    let assumption = "dcgmi writes each row at once";
    let Some(program) = program else { return vec![Check::unknown("dcgmi", assumption, "dcgmi is not installed")] };
    let units: Vec<Unit> = inventory.gpus.iter().map(|gpu| Unit { gpu: gpu.uuid.clone(), instance: None }).collect();
    let stream = match Stream::start(program, INTERVAL, units.clone()) {
        Ok(stream) => stream,
        Err(error) => return vec![Check::failed("dcgmi", assumption, error.to_string())],
    };
    let (began, mut rows) = (Instant::now(), vec![BTreeSet::new(); units.len()]);
    while began.elapsed() < WATCHED && rows.iter().any(|rows| rows.len() < ROWS) {
        for (unit, rows) in units.iter().zip(&mut rows) {
            rows.extend(stream.counters(unit).map(|Counters { at, .. }| at));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let problem = match stream.status() {
        Status::Failing(problem) => Some(problem.to_string()),
        Status::Starting | Status::Running => None,
    };
    let check = |(gpu, rows): (&carma_gpu::Gpu, &BTreeSet<Instant>)| {
        let subject = format!("dcgmi, GPU {}", gpu.index);
        match (&problem, rows.first()) {
            (Some(problem), None) => Check::unknown(subject, assumption, problem.clone()),
            (None, None) => Check::failed(subject, assumption, format!("no row within {} s", WATCHED.as_secs())),
            (_, Some(first)) => {
                let shown = format!("{} rows, the first after {:.1} s", rows.len(), (*first - began).as_secs_f64());
                Check::of(rows.len() >= ROWS, subject, assumption, shown)
            }
        }
    };
    inventory.gpus.iter().zip(&rows).map(check).collect()
}

/// What an MPS daemon answers. It has folders of its own and no client, so it starts no server and touches no GPU.
pub(super) fn mps(inventory: &Inventory, program: Option<PathBuf>) -> Vec<Check> {
    let answers = "the MPS control daemon answers as CARMA reads it";
    let Some(program) = program else { return vec![Check::unknown("MPS", answers, "it is not installed")] };
    let version = if knows_version_3(&program) { "the program knows MPS v3" } else { "the program does not know MPS v3" };
    let mut checks = vec![Check::held("MPS", "the control program runs", version)];
    let (Some(gpu), Ok(folder)) = (inventory.gpus.first(), tempfile::tempdir()) else {
        checks.push(Check::unknown("MPS", answers, "no GPU is used, or no temporary folder can be made"));
        return checks;
    };
    let control = MpsControl::new(gpu.uuid.clone(), folder.path().join("pipe"), folder.path().join("log")).with_program(program);
    // The limits are read back as they are set.
    let limits = ClientLimits { active_threads: Some(50), memory: Some(carma_core::MiB(2048)) };
    let began = Instant::now();
    checks.push(match control.start(limits) {
        Ok(()) => {
            let servers = control.servers();
            let shown = format!(
                "limits are read back, {} in {:.1} s",
                servers.as_ref().map_or_else(ToString::to_string, |servers| format!("{} servers", servers.len())),
                began.elapsed().as_secs_f64()
            );
            let check = Check::of(servers.is_ok_and(|servers| servers.is_empty()), "MPS", answers, shown);
            match control.stop(Duration::from_secs(2)) {
                Ok(()) => check,
                Err(error) => Check::failed("MPS", "the MPS control daemon stops when it is told to", error.to_string()),
            }
        }
        Err(error) => Check::failed("MPS", answers, error.to_string()),
    });
    checks.push(Check::unknown(
        "MPS",
        "servers and their clients behave as documented",
        "a client would run on a GPU: CARMA checks it with the first job by MPS",
    ));
    checks
}
