//! Coverage of a trace by the measured pairs.

use super::model::InterferenceModel;
use crate::catalogue::{Catalogue, Workload};
use crate::trace::Trace;

/// Shares of a trace's GPU-seconds whose interference is estimated from counters only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extrapolated {
    /// Workloads without a measured pair.
    pub workloads: f64,
    /// Workloads whose family has no measured pair.
    pub families: f64,
}

impl Extrapolated {
    /// Coverage of a trace whose jobs have workloads.
    pub fn of(trace: &Trace, catalogue: &Catalogue, model: &InterferenceModel) -> Self {
        let seconds = |counts: &dyn Fn(&Workload) -> bool| -> f64 {
            let jobs = trace.jobs.iter().filter(|job| job.workload.is_some_and(|workload| counts(catalogue.get(workload))));
            jobs.map(|job| job.time_alone(catalogue).unwrap_or_default().get() * f64::from(job.gpus)).sum()
        };
        let all = seconds(&|_| true).max(f64::MIN_POSITIVE);
        Self {
            workloads: seconds(&|workload| !model.workloads.contains_key(&workload.name)) / all,
            families: seconds(&|workload| !model.families.contains_key(&workload.family)) / all,
        }
    }
}
