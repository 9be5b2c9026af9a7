//! Policies and presets that a configuration may name.

use carma_core::{POLICIES, Preset, VARIANTS};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Policies, variants and presets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyList {
    /// Mapping policies.
    pub policies: Vec<Named>,
    /// Prefixes of policy names.
    pub variants: Vec<PolicyVariant>,
    /// Presets of settings.
    pub presets: Vec<Named>,
}

/// A name and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Named {
    /// Its name in configurations.
    pub name: String,
    /// What it does, in one line.
    pub about: String,
}

/// A prefix of a policy name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyVariant {
    /// The prefix: `est-`.
    pub prefix: String,
    /// What it changes, in one line.
    pub about: String,
}

impl PolicyList {
    /// Everything that this version has.
    pub fn all() -> Self {
        let named = |name: &str, about: &str| Named { name: name.to_owned(), about: about.to_owned() };
        Self {
            policies: POLICIES.iter().map(|policy| named(policy.name, policy.about)).collect(),
            variants: VARIANTS.map(|(prefix, about)| PolicyVariant { prefix: prefix.to_owned(), about: about.to_owned() }).to_vec(),
            presets: Preset::ALL.iter().map(|preset| named(preset.name(), preset.about())).collect(),
        }
    }
}
