//! Rows of the store as the API has them.

use crate::api::{Ending, EnergyOf, EnergySum, JobSummary};
use crate::store;

impl From<store::JobSummary> for JobSummary {
    fn from(row: store::JobSummary) -> Self {
        let store::JobSummary { id, name, user, user_name, phase, since, priority, gpus, attempts, array, submitted, ended, outcome } = row;
        let ending = outcome.as_ref().map(Ending::from);
        Self { id, name, user, user_name, phase, since, priority, gpus, attempts, array, submitted, ended, outcome, ending }
    }
}

impl From<store::EnergySum> for EnergySum {
    fn from(row: store::EnergySum) -> Self {
        let store::EnergySum { of, name, array, energy, attempts } = row;
        let of = match of {
            store::EnergyOf::Job(job) => EnergyOf::Job(job),
            store::EnergyOf::User { uid, name } => EnergyOf::User { uid, name },
            store::EnergyOf::Day(day) => EnergyOf::Day(day),
        };
        Self { of, name, array, energy, attempts }
    }
}
