//! Scenarios: the same traces under other load, on other servers, with other knowledge.

use carma_core::Seconds;

use super::SuiteTrace;
use crate::hardware::{GpuType, ServerGroup, Servers, Sharing};
use crate::simulation::{Estimator, Knowledge};
use crate::trace::Trace;

/// A way to run the traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Its name in tables.
    pub name: &'static str,
    /// How much faster jobs are submitted than in the trace.
    pub load: f64,
    /// GPUs of the server; unset: those of the trace.
    pub gpus: Option<u16>,
    /// Relative error of memory estimates.
    pub memory_error: f64,
    /// How GPUs are shared.
    pub sharing: Sharing,
}

const BASE: Scenario = Scenario { name: "as submitted", load: 1.0, gpus: None, memory_error: 0.1, sharing: Sharing::Streams };

/// Every scenario; the first is the one that goals are set for.
pub const SCENARIOS: [Scenario; 9] = [
    BASE,
    Scenario { name: "half load", load: 0.5, ..BASE },
    Scenario { name: "double load", load: 2.0, ..BASE },
    Scenario { name: "2 GPUs", gpus: Some(2), ..BASE },
    Scenario { name: "4 GPUs", gpus: Some(4), ..BASE },
    Scenario { name: "8 GPUs", gpus: Some(8), ..BASE },
    Scenario { name: "exact memory", memory_error: 0.0, ..BASE },
    Scenario { name: "memory error 0.3", memory_error: 0.3, ..BASE },
    Scenario { name: "MPS", sharing: Sharing::Mps, ..BASE },
];

/// Relative error of estimates of utilisation and durations, in every scenario.
pub const UTILISATION_ERROR: f64 = 0.3;

/// Relative error of the memory estimates of the scenario with this name.
pub fn memory_error_of(name: &str) -> Option<f64> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).map(|scenario| scenario.memory_error)
}

impl Scenario {
    /// A trace as it is submitted here.
    pub fn trace(&self, suite: &SuiteTrace) -> Trace {
        let mut trace = suite.trace.clone();
        for job in &mut trace.jobs {
            job.submitted = Seconds::new(job.submitted.get() / self.load).unwrap_or(job.submitted);
        }
        trace
    }

    /// The servers for a trace.
    pub fn servers(&self, suite: &SuiteTrace) -> Servers {
        let group = ServerGroup { servers: 1, gpus: self.gpus.unwrap_or(suite.gpus), kind: GpuType::reference() };
        Servers { groups: vec![group] }
    }

    /// What the scheduler knows: memory with this error, utilisation and durations with that of all scenarios.
    pub fn knowledge(&self) -> Knowledge {
        Knowledge {
            memory: Estimator::Oracle,
            memory_error: self.memory_error,
            utilisation_error: UTILISATION_ERROR,
            duration_error: Some(UTILISATION_ERROR),
            ..Knowledge::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_shortens_the_times_between_submissions() {
        let job = |seconds| crate::TraceJob {
            name: "1".to_owned(),
            submitted: Seconds::from_secs(seconds),
            gpus: 1,
            workload: None,
            duration: None,
            owner: None,
        };
        let suite = SuiteTrace { name: "two", gpus: 4, trace: Trace { jobs: vec![job(0), job(100)], ..Trace::default() } };
        let doubled = SCENARIOS[2].trace(&suite);
        assert_eq!(doubled.jobs[1].submitted, Seconds::from_secs(50));
        assert_eq!(SCENARIOS[5].servers(&suite).gpus(), 8);
    }
}
