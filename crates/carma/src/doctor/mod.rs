//! `carma doctor`: what this machine has, what is missing, and how to fix it.
//!
//! ```text
//!  gather(), probe/ (I/O) ──► facts ──► findings, manager, service, ... (pure) ──► Finding: health, fact, remedy
//! ```

mod cgroups;
mod configuration;
mod contradictions;
mod disk;
mod findings;
mod full;
mod manager;
mod permissions;
mod probe;
mod service;
mod state;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Result;
use carma_core::PowerRange;
use carma_gpu::mps::knows_version_3;
use carma_gpu::profiling::{Profiler, SourceReport, SourceState, Target};
use carma_gpu::{Driver, Gpu, Inventory, find_program};
use carma_manager::supervise::{Enforced, enforceable};
use clap::Args;
use contradictions::HostGpu;
use findings::{Facts, Finding, Health, findings};
use serde::Serialize;

use crate::gpus::{World, find, profiler_options, real};
use crate::manager::write_json;
use carma_format::{Terminal, wrapped_to};

/// A source needs two samples for its first counters.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(3);

/// How to say it.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line is a check: ok; note (it works, and could be better); warning (it works in \
part, or will stop working); error (it does not work). The remedy follows.\n\n\
Exit code: 0 if no check is an error, otherwise 1.\n\n\
Examples:\n  carma doctor\n  sudo carma doctor --json | jq '.[] | select(.health == \"error\")'")]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The state folder of the manager [default: that of the manager that answers, else /var/lib/carma (root) or ~/.local/state/carma].
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

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Area {
    Gpus,
    Manager,
    Service,
    Configuration,
    Disk,
    Permissions,
    ControlGroups,
    Store,
}

impl Area {
    const fn title(self) -> &'static str {
        match self {
            Self::Gpus => "GPUs",
            Self::Manager => "Manager",
            Self::Service => "Service",
            Self::Configuration => "Configuration",
            Self::Disk => "Disk",
            Self::Permissions => "Permissions",
            Self::ControlGroups => "Control groups",
            Self::Store => "Store",
        }
    }
}

/// A finding in JSON.
#[derive(Debug, Serialize)]
struct Row {
    area: Area,
    #[serde(flatten)]
    finding: Finding,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<ExitCode> {
    let rows: Vec<Row> = areas(arguments.state.as_deref())
        .into_iter()
        .flat_map(|(area, findings)| findings.into_iter().map(move |finding| Row { area, finding }))
        .collect();
    if arguments.json {
        write_json(&rows, output)?;
    } else {
        write_rows(&rows, output)?;
    }
    if arguments.full {
        // The others name folders of users, which do not belong into a report.
        let gpus = rows.iter().filter(|row| row.area == Area::Gpus).map(|row| &row.finding);
        full::run(gpus, arguments.output.as_deref(), output)?;
    }
    let has_errors = rows.iter().any(|row| row.finding.health == Health::Error);
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All findings, by area.
fn areas(state: Option<&Path>) -> Vec<(Area, Vec<Finding>)> {
    let facts = gather();
    let probe = probe::probe(state, facts.gpus.clone(), facts.enforced);
    let least = probe.settings.host.disk;
    vec![
        (Area::Gpus, findings(&facts)),
        (Area::Manager, manager::findings(&probe.manager, env!("CARGO_PKG_VERSION"))),
        (Area::Service, service::findings(&probe.service, probe.process)),
        (Area::Configuration, configuration::findings(&probe.configuration, &probe.host)),
        (Area::Disk, probe.disks.iter().flat_map(|disk| disk::findings(disk, least)).collect()),
        (Area::Permissions, permissions::findings(&probe.permissions)),
        (Area::ControlGroups, cgroups::findings(&probe.groups)),
        (Area::Store, probe.state.as_deref().map(state::findings).unwrap_or_default()),
    ]
}

fn write_rows(rows: &[Row], output: &mut impl Write) -> std::io::Result<()> {
    for (place, area) in rows.chunk_by(|one, next| one.area == next.area).enumerate() {
        writeln!(output, "{}{}", if place == 0 { "" } else { "\n" }, area[0].area.title())?;
        area.iter().try_for_each(|row| write_finding(&row.finding, output))?;
    }
    Ok(())
}

fn write_finding(finding: &Finding, output: &mut impl Write) -> std::io::Result<()> {
    let mark = match finding.health {
        Health::Ok => "ok",
        Health::Note => "note",
        Health::Warning => "warning",
        Health::Error => "error",
    };
    if Terminal::current().plain {
        writeln!(output, "{mark}: {}", finding.says)?;
        return finding.fix.iter().try_for_each(|fix| writeln!(output, "try: {fix}"));
    }
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
            let gpus = inventory.gpus.iter().map(|gpu| host_gpu(&driver, gpu)).collect();
            let sources = sources(driver, &inventory, &world);
            Facts { sources, driver: Ok((world, inventory)), cards, mps, mps_version_3, limits_memory, root, warnings, enforced, gpus }
        }
        Err(error) => without_driver(error.to_string(), cards, root, enforced),
    }
}

fn without_driver(why: String, cards: usize, root: bool, enforced: Enforced) -> Facts {
    let (sources, warnings) = (Vec::new(), Vec::new());
    Facts {
        driver: Err(why),
        cards,
        sources,
        mps: None,
        mps_version_3: false,
        limits_memory: false,
        root,
        warnings,
        enforced,
        gpus: Vec::new(),
    }
}

/// What the configuration must suit.
fn host_gpu(driver: &Driver, gpu: &Gpu) -> HostGpu {
    let limit = driver.default_power_limit(&gpu.uuid).ok().flatten();
    HostGpu {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        memory: gpu.memory,
        idle: limit.map(|limit| PowerRange::up_to(limit).idle),
        power_limits: driver.power_limit_range(&gpu.uuid).ok(),
    }
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
