//! `carma doctor --full`: each assumption that CARMA makes about the driver and the host, checked on this machine. It touches no job, and
//! changes nothing that stays.
//!
//! The report names neither users nor hosts nor serial numbers, so that it can be attached to a bug report.

mod check;
mod gpus;
mod names;
mod programs;
mod system;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use carma_emu::Machine;

use self::check::{Check, Report};
use super::findings::Finding;
use super::program;
use crate::gpus::{World, find, real};

/// The file of the report, unless another is given.
const FILE: &str = "carma-doctor.md";

/// Checks everything, writes the report to a file, and prints a summary.
pub(super) fn run<'a>(findings: impl Iterator<Item = &'a Finding>, file: Option<&Path>, output: &mut impl Write) -> Result<()> {
    let report = Report { findings: findings.map(|finding| finding.says.clone()).collect(), checks: checks() };
    let file = file.map_or_else(|| PathBuf::from(FILE), Path::to_owned);
    fs::write(&file, names::left_out(&report.markdown(), &names::of_this_machine()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    for check in report.checks.iter().filter(|check| !check.result.holds()) {
        writeln!(output, "{}", check.line())?;
    }
    writeln!(output, "{}", report.summary())?;
    Ok(writeln!(output, "the report is in {}", file.display())?)
}

fn checks() -> Vec<Check> {
    let mut checks = system::checks();
    let Ok((driver, world)) = find() else {
        let why = real().err().unwrap_or_else(|| "there is no driver".to_owned());
        checks.push(Check::failed("driver", "the library of the driver is found, and works", why));
        return checks;
    };
    let driver = Arc::new(driver);
    checks.extend(system::library(&driver));
    let inventory = match driver.inventory() {
        Ok(inventory) => inventory,
        Err(error) => {
            checks.push(Check::failed("driver", "the GPUs can be listed", error.to_string()));
            return checks;
        }
    };
    checks.push(Check::held("driver", "the GPUs can be listed", format!("driver {}, CUDA {}", inventory.driver, inventory.cuda)));
    checks.extend(
        inventory
            .left_out
            .iter()
            .map(|left_out| Check::failed(format!("GPU {}", left_out.index), "it is used", left_out.reason.to_string())),
    );
    checks.extend(gpus::checks(&driver, &inventory, speed(&world)));
    checks.extend(programs::dcgmi(&inventory, program("dcgmi", &world)));
    checks.extend(programs::mps(&inventory, program("nvidia-cuda-mps-control", &world)));
    checks
}

/// How much faster than real time the GPUs run.
fn speed(world: &World) -> f64 {
    match world {
        World::Real => 1.0,
        World::Emulated(folder) => Machine::open(folder).and_then(|machine| machine.clock()).map_or(1.0, |(_, speed)| speed),
    }
}
