//! All charts of a comparison, for the page and for files.

use std::collections::BTreeSet;

use super::bars::bars;
use super::distribution::completion_times;
use super::gantt::gantt;
use super::sweep::sweep;
use super::timeline::timeline;
use super::{MOST_ATTEMPTS, MOST_GPUS, MOST_POINTS, PAGE_ATTEMPTS, PAGE_POINTS};
use crate::compare::{Comparison, Curve};
use carma_format::draw::{Chart, Colours};
use carma_format::unique_slug;

/// Policies with a colour of their own, the same in every chart. The first have the clearest.
const NAMED: [&str; 24] = [
    "carma",
    "magm",
    "or-magm",
    "lug",
    "lucid",
    "horus",
    "rr",
    "ff",
    "bf",
    "or-carma",
    "or-lug",
    "or-rr",
    "or-ff",
    "or-bf",
    "est-magm",
    "est-lug",
    "est-carma",
    "est-rr",
    "est-ff",
    "est-bf",
    "or-horus",
    "or-lucid",
    "est-horus",
    "est-lucid",
];

/// Charts of one contender.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    /// Name for file names and links.
    pub(super) slug: String,
    pub(super) gantt: Chart,
    /// What the Gantt chart omits.
    pub(super) left_out: Vec<String>,
    pub(super) timeline: Option<Chart>,
}

/// Chart of one swept setting.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) setting: String,
    pub(super) chart: Chart,
}

/// All charts.
#[derive(Debug)]
pub(super) struct Charts {
    pub(super) bars: Chart,
    pub(super) completion_times: Chart,
    pub(super) sections: Vec<Section>,
    pub(super) sweeps: Vec<Sweep>,
}

impl Charts {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let contenders = comparison.contenders.iter().map(|contender| contender.name.as_str());
        let colours = Colours::of(contenders.chain(comparison.curves.iter().map(|curve| curve.policy.as_str())), &NAMED);
        Self {
            bars: bars(comparison, &colours),
            completion_times: completion_times(comparison, &colours),
            sections: sections(comparison),
            sweeps: sweeps(&comparison.curves, &colours),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Chart> {
        let sections = self.sections.iter().flat_map(|section| [Some(&section.gantt), section.timeline.as_ref()]).flatten();
        [&self.bars, &self.completion_times].into_iter().chain(sections).chain(self.sweeps.iter().map(|sweep| &sweep.chart))
    }
}

fn sections(comparison: &Comparison) -> Vec<Section> {
    let end = comparison.contenders.iter().map(|contender| contender.example.ended).max().unwrap_or_default();
    let how_many = comparison.contenders.len().max(1);
    let most_attempts = MOST_ATTEMPTS.min(PAGE_ATTEMPTS / how_many);
    let mut slugs = BTreeSet::new();
    let section = |contender: &crate::Contender| {
        let slug = unique_slug(&contender.name, &mut slugs);
        let lines = how_many * contender.example.gpus.len().clamp(1, MOST_GPUS) * 3;
        let names = (contender.name.as_str(), slug.as_str());
        let (gantt, left_out) = gantt(&contender.example, names, end, most_attempts);
        let timeline = timeline(&contender.example, names, end, MOST_POINTS.min(PAGE_POINTS / lines));
        Section { name: contender.name.clone(), gantt, left_out, timeline, slug }
    };
    comparison.contenders.iter().map(section).collect()
}

/// One chart per setting, in order of first occurrence.
fn sweeps(curves: &[Curve], colours: &Colours) -> Vec<Sweep> {
    let mut settings: Vec<&str> = Vec::new();
    for curve in curves {
        if !settings.contains(&curve.setting.as_str()) {
            settings.push(&curve.setting);
        }
    }
    let mut slugs = BTreeSet::new();
    let of_setting = |setting: &str| {
        let curves: Vec<&Curve> = curves.iter().filter(|curve| curve.setting == setting).collect();
        let slug = unique_slug(setting, &mut slugs);
        Sweep { setting: setting.to_owned(), chart: sweep(setting, &slug, &curves, colours) }
    };
    settings.into_iter().map(of_setting).collect()
}

#[cfg(test)]
mod tests {
    use carma_core::{POLICIES, VARIANTS};

    use super::*;

    #[test]
    fn every_policy_has_its_colour() {
        let shares = POLICIES.iter().filter(|policy| policy.name != "exclusive");
        let all = shares
            .flat_map(|policy| [""].into_iter().chain(VARIANTS.map(|(prefix, _)| prefix)).map(|prefix| format!("{prefix}{}", policy.name)));
        let all: Vec<String> = all.collect();
        assert!(all.iter().all(|name| NAMED.contains(&name.as_str())), "{all:?}");
        assert_eq!(all.len(), NAMED.len());
    }
}
