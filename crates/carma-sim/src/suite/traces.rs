//! The 13 traces: five published ones, from a folder, and eight generated ones. The generated ones are kept as files, because a
//! generator may change.

use std::path::Path;

use crate::catalogue::Catalogue;
use crate::trace::{ReadLimits, Trace, TraceError};

/// A trace with the number of its GPUs.
#[derive(Debug, Clone)]
pub struct SuiteTrace {
    /// Its name in tables.
    pub name: &'static str,
    /// A100-40GB GPUs that it was made for.
    pub gpus: u16,
    /// Its jobs.
    pub trace: Trace,
}

const PUBLISHED: [(&str, &str, u16); 5] = [
    ("philly60", "philly60_jobs.csv", 3),
    ("mix90", "carma_mix90.csv", 4),
    ("heavy60", "carma_heavy60.csv", 4),
    ("t1_60", "carma_t1_60.csv", 4),
    ("t2_60", "carma_t2_60.csv", 4),
];

macro_rules! generated {
    ($($name:literal),+) => { [$(($name, include_str!(concat!("../../suite/", $name, ".csv")))),+] };
}

const GENERATED: [(&str, &str); 8] = generated!["light21", "light22", "light23", "light24", "heavy21", "heavy22", "heavy23", "heavy24"];

/// Names of the published files that the folder must have.
pub fn published_files() -> impl Iterator<Item = &'static str> {
    PUBLISHED.iter().map(|(_, file, _)| *file)
}

/// Reads the published traces from a folder, and adds the generated ones.
pub fn read(folder: &Path, catalogue: &Catalogue) -> Result<Vec<SuiteTrace>, TraceError> {
    let limits = ReadLimits::default();
    let published = PUBLISHED.into_iter().map(|(name, file, gpus)| {
        let trace = Trace::read(&folder.join(file), catalogue, &limits)?;
        Ok(SuiteTrace { name, gpus, trace })
    });
    let generated = GENERATED.into_iter().map(|(name, text)| {
        let trace = Trace::parse(&format!("{name}.csv"), text.as_bytes(), catalogue, &limits)?;
        Ok(SuiteTrace { name, gpus: 4, trace })
    });
    published.chain(generated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_traces_are_complete() {
        let catalogue = Catalogue::shipped();
        let jobs = GENERATED.map(|(name, text)| {
            let trace = Trace::parse(name, text.as_bytes(), &catalogue, &ReadLimits::default()).unwrap();
            assert!(trace.jobs.iter().all(|job| job.workload.is_some()), "{name}");
            trace.jobs.len()
        });
        assert_eq!(jobs, [90, 90, 90, 90, 60, 60, 60, 60]);
    }
}
