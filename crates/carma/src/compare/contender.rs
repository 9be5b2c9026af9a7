//! The compared policies, their rules, and their estimators.

use anyhow::Result;
use carma_core::{MemoryBasis, Settings};
use carma_sim::{Aim, Knowledge};

use crate::configuration::policy_settings;

/// One row of the table, before it has run.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) knowledge: Knowledge,
    /// The source of memory estimates; none if the policy uses none.
    pub(super) estimator: String,
    /// Search for the best order, with full knowledge of the jobs.
    pub(super) search: Option<Aim>,
}

/// Every policy with every estimator; a policy that uses no estimator appears once.
pub(super) fn entries(
    policies: &[String],
    estimators: &[String],
    base: &Settings,
    knowledge: impl Fn(&str) -> Result<Knowledge>,
) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut named = vec!["exclusive".to_owned()];
    for policy in policies.iter().map(|policy| policy.to_lowercase()) {
        if !named.contains(&policy) {
            named.push(policy);
        }
    }
    for policy in named {
        let settings = policy_settings(&policy, base)?;
        let mapping = settings.check()?.mapping;
        let uses_estimates = mapping.policy.shares && mapping.basis != MemoryBasis::Floor;
        for estimator in estimators.iter().take(if uses_estimates { estimators.len() } else { 1 }) {
            let named = uses_estimates && estimators.len() > 1;
            let used = if uses_estimates { estimator.clone() } else { "none".to_owned() };
            let name = if named { format!("{policy} {estimator}") } else { policy.clone() };
            entries.push(Entry { name, settings: settings.clone(), knowledge: knowledge(estimator)?, estimator: used, search: None });
        }
    }
    Ok(entries)
}

/// The best orders that a search finds.
pub(super) fn best_orders<'a>(aims: &'a [Aim], base: &'a Settings) -> impl Iterator<Item = Entry> + 'a {
    aims.iter().map(|aim| Entry {
        name: format!("best order: {aim}"),
        settings: base.clone(),
        knowledge: Knowledge::default(),
        estimator: "exact knowledge".to_owned(),
        search: Some(*aim),
    })
}
