//! Where the figures of a comparison come from: enough to make them again.

use serde::Serialize;

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// The version of CARMA.
    pub carma: String,
    /// The command line.
    pub command: String,
    /// The seeds of the runs, in words.
    pub seeds: String,
    /// Each policy, in the order of the table.
    pub policies: Vec<PolicyOrigin>,
}

/// What one policy was run with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PolicyOrigin {
    /// Its name in the table.
    pub name: String,
    /// The source of memory estimates.
    pub estimator: String,
    /// Its settings, as JSON: preset, policy, and what differs from the preset.
    pub settings: String,
}
