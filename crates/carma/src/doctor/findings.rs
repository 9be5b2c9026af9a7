//! The findings about GPUs, and what a finding is: pure, so that every case can be tested.

use std::path::PathBuf;

use carma_gpu::profiling::{Problem, Source, SourceReport, SourceState};
use carma_gpu::{Gpu, Inventory};
use carma_manager::memory_limits::CannotLimit;
use carma_manager::supervise::Enforced;
use serde::Serialize;

use super::contradictions::HostGpu;

use crate::gpus::World;

/// Facts about a machine.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The driver in use, or why there is none.
    pub(crate) driver: Result<(World, Inventory), String>,
    /// NVIDIA cards on the PCI bus, independent of the driver.
    pub(crate) cards: usize,
    /// Possible sources of profiling counters.
    pub(crate) sources: Vec<SourceReport>,
    /// MPS' control program.
    pub(crate) mps: Option<PathBuf>,
    /// Whether it knows the third version of MPS.
    pub(crate) mps_version_3: bool,
    /// Whether the driver can enforce memory limits of control groups.
    pub(crate) limits_memory: bool,
    /// Whether we may change the driver's settings.
    pub(crate) root: bool,
    /// Environment variables that may be misread.
    pub(crate) warnings: Vec<String>,
    /// Limits of jobs that the kernel enforces.
    pub(crate) enforced: Enforced,
    /// Its GPUs, as the configuration must suit them.
    pub(crate) gpus: Vec<HostGpu>,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// As it should be.
    Ok,
    /// It works; it could be better.
    Note,
    /// It works only in part, or will stop working.
    Warning,
    /// It does not work.
    Error,
}

/// One finding of the doctor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) health: Health,
    /// The fact.
    pub(crate) says: String,
    /// The remedy: a command, or a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

pub(super) fn finding(health: Health, says: impl Into<String>, fix: Option<&str>) -> Finding {
    Finding { health, says: says.into(), fix: fix.map(str::to_owned) }
}

/// How the driver is installed.
const INSTALL: &str = "apt install nvidia-driver, or ubuntu-drivers install on Ubuntu, then restart the machine";

/// All findings, most important first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    match &facts.driver {
        Ok((world, inventory)) => {
            let mut all = about_driver(world, inventory);
            all.extend(about_gpus(inventory));
            all.extend(facts.warnings.iter().map(|warning| finding(Health::Note, warning.as_str(), None)));
            all.extend(about_sources(&facts.sources));
            all.extend(about_sharing(facts, inventory));
            all
        }
        Err(why) => without_driver(why, facts.cards),
    }
}

fn without_driver(why: &str, cards: usize) -> Vec<Finding> {
    // The error about a driver updated under its library already names the remedy.
    let install = if why.contains("restart") { None } else { Some(INSTALL) };
    let driver = match cards {
        0 => finding(Health::Note, format!("this machine has no NVIDIA GPU ({why}): jobs with GPUs cannot run here"), None),
        1 => finding(Health::Error, format!("an NVIDIA card is present, but its driver does not work: {why}"), install),
        several => finding(Health::Error, format!("{several} NVIDIA cards are present, but their driver does not work: {why}"), install),
    };
    let emulated = "estimates, the simulator and emulated GPUs work without it";
    vec![driver, finding(Health::Ok, emulated, Some("carma emu up"))]
}

fn about_driver(world: &World, inventory: &Inventory) -> Vec<Finding> {
    let Inventory { driver, cuda, .. } = inventory;
    let version = match driver.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        // It added memory without the driver's reserve, and process lists by instance.
        Some(major) if major < 510 => finding(
            Health::Error,
            format!("driver {driver} is too old: memory and processes cannot be read completely"),
            Some("install driver 510 or later"),
        ),
        _ => finding(Health::Ok, format!("driver {driver} with CUDA {cuda}"), None),
    };
    let world = match world {
        World::Real => None,
        World::Emulated(_) => Some(finding(Health::Note, format!("these GPUs are not real: {world}"), Some("carma emu down"))),
    };
    std::iter::once(version).chain(world).collect()
}

fn about_gpus(inventory: &Inventory) -> Vec<Finding> {
    let mut all = vec![match inventory.gpus.len() {
        0 => finding(Health::Error, "no GPU can be used for training", None),
        _ => finding(Health::Ok, kinds(&inventory.gpus), None),
    }];
    all.extend(inventory.exclusions().into_iter().map(|exclusion| finding(Health::Note, exclusion, None)));
    all.extend(
        inventory
            .failures()
            .into_iter()
            .map(|failure| finding(Health::Warning, failure, Some("nvidia-smi -r resets a GPU; dmesg shows what the driver says"))),
    );
    let without_persistence = inventory.gpus.iter().filter(|gpu| gpu.persistence == Some(false)).count();
    if without_persistence > 0 {
        let says =
            format!("persistence mode is off on {without_persistence} of {} GPUs: jobs start slowly after a pause", inventory.gpus.len());
        all.push(finding(Health::Note, says, Some("nvidia-smi -pm 1")));
    }
    all
}

/// Sources in use, and those that would help if some GPU has none.
fn about_sources(reports: &[SourceReport]) -> impl Iterator<Item = Finding> {
    let lacking = reports.iter().any(|report| report.source == Source::UtilisationOnly && matches!(report.state, SourceState::Used(_)));
    let relevant = move |report: &&SourceReport| match &report.state {
        SourceState::Used(_) | SourceState::Starting => true,
        SourceState::Absent(problem) => lacking && *problem != Problem::NotAsked,
        SourceState::Spare => false,
    };
    reports.iter().filter(relevant).map(about_source)
}

fn about_source(source: &SourceReport) -> Finding {
    let health = match (&source.state, source.source) {
        (SourceState::Used(gpus), Source::UtilisationOnly) => {
            let those = if *gpus == 1 { "1 GPU is".to_owned() } else { format!("{gpus} GPUs are") };
            let says = format!("{those} assessed by utilisation only: SMACT, SMOCC and DRAMA are not measured");
            return finding(Health::Note, says, None);
        }
        (SourceState::Absent(_), _) => Health::Note,
        _ => Health::Ok,
    };
    finding(health, format!("counters from {source}"), source.remedy())
}

fn about_sharing(facts: &Facts, inventory: &Inventory) -> Vec<Finding> {
    let mps = if facts.mps.is_some() {
        let says = "MPS is available: by published measurements, jobs that share a GPU disturb each other less with it. \
                    CARMA uses it where manager.gpus.mps or modes.allowed says so";
        let fix = "carma profile jobs.toml --pairs --modes streams,mps shows its gain for your jobs; modes.allowed turns it on \
                   (docs/modes.md)";
        finding(Health::Note, says, Some(fix))
    } else {
        let fix = "it comes with the driver: apt install nvidia-cuda-mps, or nvidia-compute-utils-VERSION on Ubuntu";
        finding(Health::Note, "MPS is not installed: GPUs are shared by time slices only", Some(fix))
    };
    let mig_capable = inventory.gpus.iter().filter(|gpu| gpu.mig.is_some()).count();
    let rights = if facts.root { "" } else { "; changing them needs root" };
    let mig =
        (mig_capable > 0).then(|| finding(Health::Ok, format!("{mig_capable} GPUs can be partitioned into MIG instances{rights}"), None));
    let version_3 = facts.mps_version_3.then(|| {
        finding(
            Health::Note,
            "this driver has MPS v3 (named servers, namespaces): CARMA uses the former MPS, which this driver still supports",
            None,
        )
    });
    std::iter::once(mps).chain(version_3).chain([about_memory_limits(facts)]).chain(mig).collect()
}

fn about_memory_limits(facts: &Facts) -> Finding {
    let emulated = matches!(facts.driver, Ok((World::Emulated(_), _)));
    let lacking =
        if facts.limits_memory { CannotLimit::on_host(facts.root, facts.enforced, emulated) } else { Some(CannotLimit::OldDriver) };
    match lacking {
        None => finding(Health::Ok, "the driver limits the GPU memory of jobs (enforce.memory)", None),
        Some(why) => {
            let fix = matches!(why, CannotLimit::NotRoot | CannotLimit::NoGroups).then_some("carma service install, as root");
            finding(Health::Note, format!("outside MPS and MIG, reserved GPU memory is not enforced: enforcement {why}"), fix)
        }
    }
}

/// GPU counts by model: `3 GPUs: 2 x A, 1 x B`.
fn kinds(gpus: &[Gpu]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for gpu in gpus {
        match kinds.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&gpu.name, 1)),
        }
    }
    let names: Vec<String> = kinds.into_iter().map(|(name, count)| format!("{count} x {name}")).collect();
    format!("{} GPU{}: {}", gpus.len(), if gpus.len() == 1 { "" } else { "s" }, names.join(", "))
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;
    use carma_gpu::{Capability, LeftOut, Unfit};
    use carma_manager::supervise::GroupVersion;

    use super::*;

    fn gpu(index: u32, name: &str) -> Gpu {
        Gpu {
            index,
            uuid: format!("GPU-{index}").parse().unwrap(),
            file: Some(index),
            pci: "0000:07:00.0".parse().unwrap(),
            name: name.to_owned(),
            memory: MiB(40_960),
            reserved: MiB(424),
            capability: Capability { major: 8, minor: 0 },
            mig: name.contains("A100").then_some(false),
            compute_mode: None,
            display: false,
            power_limit: None,
            persistence: Some(false),
            usable_instances: None,
        }
    }

    fn facts(driver: &str, gpus: Vec<Gpu>, sources: Vec<(Source, SourceState)>) -> Facts {
        let inventory = Inventory { driver: driver.to_owned(), cuda: "12.4".to_owned(), gpus, left_out: Vec::new() };
        let sources = sources.into_iter().map(|(source, state)| SourceReport { source, state }).collect();
        Facts {
            driver: Ok((World::Real, inventory)),
            cards: 1,
            sources,
            mps: None,
            mps_version_3: false,
            limits_memory: false,
            root: false,
            warnings: Vec::new(),
            enforced: Enforced::default(),
            gpus: Vec::new(),
        }
    }

    /// Health, text and remedy of each finding.
    fn lines(facts: &Facts) -> Vec<String> {
        let line = |finding: &Finding| {
            let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!(" -> {fix}"));
            format!("{:?}: {}{fix}", finding.health, finding.says)
        };
        findings(facts).iter().map(line).collect()
    }

    #[test]
    fn a_card_without_a_driver_is_not_the_same_as_no_card() {
        let without = |cards| Facts {
            driver: Err("there is no NVIDIA driver".to_owned()),
            cards,
            sources: Vec::new(),
            mps: None,
            mps_version_3: false,
            limits_memory: false,
            root: true,
            enforced: Enforced { memory: true, cpus: true, processes: true, gpus: true, groups: Some(GroupVersion::Two) },
            warnings: Vec::new(),
            gpus: Vec::new(),
        };
        assert!(lines(&without(0))[0].starts_with("Note: this machine has no NVIDIA GPU (there is no NVIDIA driver)"));
        assert!(lines(&without(2))[0].starts_with("Error: 2 NVIDIA cards are present, but their driver does not work"));
        assert!(lines(&without(1))[0].contains("-> apt install nvidia-driver"));
        assert!(lines(&without(0))[1].ends_with("-> carma emu up"));
    }

    #[test]
    fn a_server_without_dcgm_gets_a_remedy() {
        let absent = |problem| SourceState::Absent(problem);
        let facts = facts(
            "550.54.15",
            vec![gpu(0, "NVIDIA A100-SXM4-40GB"), gpu(1, "NVIDIA A100-SXM4-40GB")],
            vec![
                (Source::Gpm, absent(Problem::NoGpm)),
                (Source::Dcgmi, absent(Problem::NotInstalled("dcgmi".to_owned()))),
                (Source::Exporter, absent(Problem::NotAsked)),
                (Source::UtilisationOnly, SourceState::Used(2)),
            ],
        );
        insta::assert_snapshot!(lines(&facts).join("\n"));
    }

    #[test]
    fn mps_is_recommended_where_it_is_available_and_its_gain_is_to_be_shown_first() {
        let mut facts = facts("550.54.15", vec![gpu(0, "NVIDIA A100-SXM4-40GB")], vec![(Source::Dcgmi, SourceState::Used(1))]);
        let about_mps = |facts: &Facts| lines(facts).into_iter().filter(|line| line.contains("MPS")).collect::<Vec<_>>();
        assert!(!about_mps(&facts)[0].contains("carma profile"), "there is nothing to show");
        facts.mps = Some("/usr/bin/nvidia-cuda-mps-control".into());
        insta::assert_snapshot!(about_mps(&facts).join("\n"));
    }

    #[test]
    fn old_drivers_and_silent_gpus_are_reported() {
        let mut facts = facts(
            "470.82.01",
            vec![gpu(0, "Tesla V100-SXM2-32GB")],
            vec![(Source::Dcgmi, SourceState::Used(1)), (Source::Gpm, SourceState::Absent(Problem::NoGpm))],
        );
        if let Ok((_, inventory)) = &mut facts.driver {
            inventory.left_out.push(LeftOut { index: 1, uuid: None, name: None, reason: Unfit::Lost });
        }
        let lines = lines(&facts);
        assert!(lines[0].starts_with("Error: driver 470.82.01 is too old") && lines[0].ends_with("-> install driver 510 or later"));
        assert!(
            lines.iter().any(|line| line.starts_with("Warning: GPU 1 is not used: fell off the bus or needs a reset -> ")),
            "{lines:?}"
        );
        // With one source of counters, missing other sources are not worth a line.
        assert!(!lines.iter().any(|line| line.contains("gpm")));
    }
}
