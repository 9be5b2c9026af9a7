//! `carma doctor`: what this machine has, what is missing, and how to fix it.

mod findings;
mod full;
mod state;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Result;
use carma_gpu::mps::knows_version_3;
use carma_gpu::profiling::{Profiler, SourceReport, SourceState, Target};
use carma_gpu::{Driver, Inventory, find_program};
use carma_manager::places::Places;
use carma_manager::supervise::{Enforced, enforceable};
use clap::Args;
use findings::{Facts, Finding, Health, findings};

use crate::gpus::{World, find, profiler_options, real};
use crate::manager::write_json;
use carma_format::wrapped_to;

/// A source needs two samples for its first counters.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(3);

/// How to say it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma doctor")]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The state folder of the manager [default: /var/lib/carma (root) or ~/.local/state/carma].
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Also check each assumption about the driver and the host (about 15 s), and
    /// write a report for a bug report. Touches no job, changes nothing that stays.
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// The file of that report [default: carma-doctor.md]
    #[arg(long, value_name = "FILE", requires = "full")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let state = arguments.state.clone().unwrap_or_else(|| Places::own().state);
    let mut findings = findings(&gather());
    findings.extend(state::findings(&state));
    if arguments.json {
        return write_json(&findings, output);
    }
    findings.iter().try_for_each(|finding| write_finding(finding, output))?;
    if arguments.full { full::run(&findings, arguments.output.as_deref(), output) } else { Ok(()) }
}

fn write_finding(finding: &Finding, output: &mut impl Write) -> std::io::Result<()> {
    let mark = match finding.health {
        Health::Ok => "ok",
        Health::Note => "note",
        Health::Missing => "missing",
    };
    let mut lines = wrapped_to(&finding.says, 71).lines().map(str::to_owned).collect::<Vec<_>>();
    lines.extend(finding.fix.iter().flat_map(|fix| wrapped_to(&format!("try: {fix}"), 71).lines().map(str::to_owned).collect::<Vec<_>>()));
    for (place, line) in lines.iter().enumerate() {
        writeln!(output, "{:<9}{line}", if place == 0 { mark } else { "" })?;
    }
    Ok(())
}

fn gather() -> Facts {
    let found = find();
    let cards = cards_on_bus();
    let enforced = enforceable();
    let root = rustix::process::geteuid().is_root();
    let Ok((driver, world)) = found else {
        let why = real().err().unwrap_or_default();
        return without_driver(why, cards, root, enforced);
    };
    match driver.inventory() {
        Ok(inventory) => {
            let mps = program("nvidia-cuda-mps-control", &world);
            let mps_version_3 = mps.as_deref().is_some_and(knows_version_3);
            let limits_memory = inventory.gpus.first().is_some_and(|gpu| driver.limits_memory(&gpu.uuid));
            let warnings = driver.limits().allocation.warnings(&inventory);
            let sources = sources(driver, &inventory, &world);
            Facts { sources, driver: Ok((world, inventory)), cards, mps, mps_version_3, limits_memory, root, warnings, enforced }
        }
        Err(error) => without_driver(error.to_string(), cards, root, enforced),
    }
}

fn without_driver(why: String, cards: usize, root: bool, enforced: Enforced) -> Facts {
    let (sources, warnings) = (Vec::new(), Vec::new());
    Facts { driver: Err(why), cards, sources, mps: None, mps_version_3: false, limits_memory: false, root, warnings, enforced }
}

/// Sources of counters, after every source had time to deliver some.
fn sources(driver: Driver, inventory: &Inventory, world: &World) -> Vec<SourceReport> {
    let targets = inventory.gpus.iter().map(|gpu| Target::gpu(gpu.uuid.clone())).collect();
    let Ok(profiler) = Profiler::start(Arc::new(driver), targets, profiler_options(world)) else { return Vec::new() };
    let until = Instant::now() + SOURCE_TIMEOUT;
    let unsettled = |report: &SourceReport| report.state == SourceState::Starting;
    while Instant::now() < until && profiler.report().iter().any(unsettled) {
        thread::sleep(Duration::from_millis(50));
    }
    profiler.report()
}

/// NVIDIA's display and 3D controllers on the PCI bus.
fn cards_on_bus() -> usize {
    let devices = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let is_card = |folder: PathBuf| read(folder.join("vendor")).starts_with("0x10de") && read(folder.join("class")).starts_with("0x03");
    devices.filter(|device| is_card(device.path())).count()
}

/// Path of a program of the driver.
fn program(name: &str, world: &World) -> Option<PathBuf> {
    match world {
        World::Emulated(folder) => find_program(&folder.join("bin").join(name)),
        World::Real => find_program(name.as_ref()),
    }
}
