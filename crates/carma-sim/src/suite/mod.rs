//! The standard comparison of policies: 13 traces in several scenarios.

mod figures;
mod policies;
mod scenarios;
mod traces;

pub use figures::{Figure, PolicyResult, ScenarioResult};
pub use policies::{OWN_POLICIES, PROTOTYPE, published_policies};
pub use scenarios::{SCENARIOS, Scenario, UTILISATION_ERROR, memory_error_of};
pub use traces::{SuiteTrace, published_files, read};
