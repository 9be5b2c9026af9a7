//! The compared policies, their rules, and their estimators.

use anyhow::{Context, Result, bail};
use carma_core::{MemoryBasis, PowerPreference, Preset, Settings};
use carma_sim::{Aim, Knowledge};
use toml::Value;

use super::sweep::with_setting;

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

/// The rules of a policy as it is written in lists: `or-magm`, `magm/aegis`, `or-lug/aegis/no-screen`, `carma/queue.order=submission`.
pub(crate) fn settings(written: &str, base: &Settings) -> Result<Settings> {
    let mut parts = written.split('/');
    let mut settings = Settings { policy: parts.next().map(str::to_owned), ..base.clone() };
    for part in parts {
        if let Some((key, value)) = part.split_once('=') {
            // A bare word is text; everything else is parsed as TOML.
            let value = value.parse().unwrap_or_else(|_| Value::String(value.to_owned()));
            settings = with_setting(&settings, key, value).with_context(|| format!("{written:?} cannot be used"))?;
            continue;
        }
        match part.parse::<Preset>() {
            Ok(preset) => settings.preset = Some(preset),
            Err(_) if part == "no-screen" => settings.screen.get_or_insert_default().enabled = Some(false),
            Err(_) if part == "pack" => settings.power.get_or_insert_default().prefer = Some(PowerPreference::Pack),
            Err(error) => bail!("{written:?}: {error}; or no-screen, pack, or key=value"),
        }
    }
    settings.check().with_context(|| format!("{written:?} cannot be used"))?;
    Ok(settings)
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
        let settings = settings(&policy, base)?;
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
