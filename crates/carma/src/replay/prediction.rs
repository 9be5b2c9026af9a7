//! The simulator's prediction for the same jobs and rules.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use carma_core::Settings;
use carma_emu::Profile;
use carma_manager::api::GpuDetail;
use carma_sim::{Catalogue, Estimates, Estimator, GpuType, InterferenceModel, Knowledge, Run, Servers, Simulation, SimulationError, Trace};

use super::figures::Figures;
use crate::progress::simulate_all;

/// Number of runs; the prediction is their mean. Runs come in mirrored pairs, so it is even.
pub(crate) const SEEDS: u64 = 20;

/// Predicts a run: the mean over several seeds.
pub(crate) fn predict(
    catalogue: &Catalogue,
    trace: &Trace,
    servers: &Servers,
    settings: &Settings,
    estimator: &Estimator,
) -> Result<Figures> {
    let runs = simulated_runs(catalogue, trace, servers, settings, estimator)?;
    Ok(Figures::mean(&runs.iter().map(|run| (&run.summary()).into()).collect::<Vec<_>>()))
}

/// The runs that [`predict`] averages, one per seed.
pub(crate) fn simulated_runs(
    catalogue: &Catalogue,
    trace: &Trace,
    servers: &Servers,
    settings: &Settings,
    estimator: &Estimator,
) -> Result<Vec<Run>> {
    let interference = InterferenceModel::shipped();
    let knowledge = Knowledge { memory: as_declared(estimator, catalogue), ..Knowledge::default() };
    let seeds: Vec<u64> = (0..SEEDS).collect();
    let simulate = |seed: &u64| -> Result<Run, SimulationError> {
        let simulation = Simulation::new((catalogue, &interference), trace, servers, settings, &knowledge);
        Simulation { seed: *seed, ..simulation }.run()
    };
    Ok(simulate_all(&seeds, simulate)?)
}

/// The manager knows only the declared memory of a job.
fn as_declared(estimator: &Estimator, catalogue: &Catalogue) -> Estimator {
    Estimator::Declared(match estimator {
        Estimator::None => Estimates::default(),
        Estimator::Oracle => {
            let peak = |workload: &carma_sim::Workload| workload.ranks.iter().map(|rank| rank.peak).max().unwrap_or_default();
            catalogue.iter().map(|(id, workload)| (id, peak(workload))).collect()
        }
        Estimator::Table(answers) | Estimator::Declared(answers) => answers.clone(),
    })
}

/// The model of a GPU, if the simulator supports it.
pub(crate) fn simulated_kind(gpu: &GpuDetail) -> Option<&'static GpuType> {
    Profile::all().iter().find(|profile| profile.facts.product == gpu.name).map(|profile| profile.kind)
}

/// The GPUs of a manager in the simulator's terms.
pub(super) fn servers(gpus: &[GpuDetail]) -> Result<Servers> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for gpu in gpus {
        let Some(kind) = simulated_kind(gpu) else { bail!("{} has no data for a simulation", gpu.name) };
        *kinds.entry(kind.name).or_default() += 1;
    }
    let groups: Vec<String> = kinds.iter().map(|(kind, gpus)| format!("{gpus}x{kind}")).collect();
    groups.join(",").parse().context("the manager has no GPUs that could be simulated")
}
