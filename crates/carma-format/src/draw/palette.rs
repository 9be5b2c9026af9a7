//! Colours: on light and dark grounds, distinguishable by colour-blind people, the same for a name wherever it occurs.

use std::fmt::Write;

/// Colours of contenders, besides the baseline's grey.
const SERIES: usize = 8;
/// Colours of jobs; none is red, which is for attempts that ran out of memory.
const JOBS: usize = 10;

/// All colours on one ground.
#[derive(Debug)]
pub(super) struct Theme {
    ground: &'static str,
    ink: &'static str,
    quiet: &'static str,
    grid: &'static str,
    alarm: &'static str,
    alarm_ground: &'static str,
    /// The baseline's first. After Okabe and Ito, darker or lighter for the ground.
    series: [&'static str; SERIES + 1],
    jobs: [&'static str; JOBS],
}

pub(super) const LIGHT: Theme = Theme {
    ground: "#ffffff",
    ink: "#1c2430",
    quiet: "#566070",
    grid: "#e1e5ea",
    alarm: "#c4161c",
    alarm_ground: "#f7c5c5",
    series: ["#6b7480", "#0072b2", "#d55e00", "#00876a", "#b5498a", "#3b9fd9", "#b07d00", "#6a4fb3", "#7a4a2b"],
    jobs: ["#9cc4ea", "#a9d8b8", "#f0d68a", "#c9b8ea", "#8fd3d6", "#d9c3a5", "#b4c7a0", "#e8bfdc", "#b9c4d2", "#f2c79b"],
};

pub(super) const DARK: Theme = Theme {
    ground: "#14181f",
    ink: "#e6eaf0",
    quiet: "#9aa5b4",
    grid: "#2b323d",
    alarm: "#ff6b66",
    alarm_ground: "#5c2326",
    series: ["#a3acb8", "#4ba6e6", "#f08a4b", "#2fc49a", "#e58fc2", "#93d0f5", "#e3b341", "#ad97f0", "#cf9f7f"],
    jobs: ["#2f5f8f", "#2f6b48", "#77601c", "#5b4689", "#23686c", "#6b5436", "#4f6637", "#7d4a6e", "#4a5665", "#7f5528"],
};

impl Theme {
    /// The style sheet of every chart.
    pub(super) fn rules(&self) -> String {
        let Self { ground, ink, quiet, grid, alarm, alarm_ground, series, jobs } = self;
        let mut rules = format!(
            "\
.chart text{{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:{ink}}}
.chart .small{{font-size:10.5px}}
.chart .strong{{font-weight:600}}
.chart .label{{pointer-events:none}}
.chart .quiet{{fill:{quiet}}}
.chart .middle{{text-anchor:middle}}
.chart .end{{text-anchor:end}}
.chart .ground{{fill:{ground}}}
.chart .grid{{stroke:{grid};stroke-width:1}}
.chart .axis{{stroke:{quiet};stroke-width:1}}
.chart .mark{{stroke:{quiet};stroke-width:1;stroke-dasharray:4 3}}
.chart .limit{{stroke:{alarm};stroke-width:1;stroke-dasharray:5 3}}
.chart .whisker{{stroke:{ink};stroke-width:1.2}}
.chart .bar,.chart .dot{{fill:currentColor}}
.chart .line{{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}}
.chart .level{{fill:currentColor;fill-opacity:.18;stroke:currentColor;stroke-width:1}}
.chart .dashed{{stroke-dasharray:7 3}}
.chart .dotted{{stroke-dasharray:2 3}}
.chart .job{{stroke:{ground};stroke-width:.7}}
.chart .oom{{stroke:{alarm};stroke-width:1}}
.chart .lost{{fill:{quiet};stroke:{ink};stroke-width:1}}
.chart .hatch-ground{{fill:{alarm_ground}}}
.chart .hatch{{stroke:{alarm};stroke-width:2}}
"
        );
        for (place, colour) in series.iter().enumerate() {
            let _ = writeln!(rules, ".chart .s{place}{{color:{colour}}}");
        }
        for (place, colour) in jobs.iter().enumerate() {
            let _ = writeln!(rules, ".chart .j{place}{{fill:{colour}}}");
        }
        rules
    }
}

/// Which colour each name has.
#[derive(Debug)]
pub struct Colours {
    names: Vec<(String, String)>,
}

impl Colours {
    /// The names in `fixed` have the colour of their place there, whatever else is drawn; the grey is for exclusive, with which all are
    /// compared. Any other name takes the colour to which it leads, or the next that is free. Where there are more names than colours,
    /// lines are dashed.
    pub fn of<'a>(names: impl Iterator<Item = &'a str> + Clone, fixed: &[&str]) -> Self {
        let place_of = |name: &str| fixed.iter().position(|known| *known == name);
        let mut taken: Vec<usize> = names.clone().filter_map(place_of).collect();
        let mut all: Vec<(String, String)> = Vec::new();
        for name in names {
            if all.iter().any(|(known, _)| known == name) {
                continue;
            }
            let class = if name.eq_ignore_ascii_case("exclusive") {
                "s0".to_owned()
            } else {
                let place = place_of(name).unwrap_or_else(|| free(name, &taken));
                taken.push(place);
                format!("s{}{}", place % SERIES + 1, ["", " dashed", " dotted"][place / SERIES % 3])
            };
            all.push((name.to_owned(), class));
        }
        Self { names: all }
    }

    /// The class of a name's lines and bars.
    pub fn class(&self, name: &str) -> &str {
        self.names.iter().find(|(known, _)| known == name).map_or("s0", |(_, class)| class)
    }
}

/// A free place for a name: with the fewest dashes, from the one to which the name leads.
fn free(name: &str, taken: &[usize]) -> usize {
    let wanted = hash(name) as usize % SERIES;
    let places = (0..).flat_map(|dashes| (0..SERIES).map(move |step| dashes * SERIES + (wanted + step) % SERIES));
    places.take(taken.len() * SERIES + SERIES).find(|place| !taken.contains(place)).unwrap_or(wanted)
}

/// The class of a job's rectangles.
pub fn job_class(job: usize) -> String {
    // Neighbours in a queue run side by side: a step that is coprime to the number of colours keeps them apart.
    format!("job j{}", job * 3 % JOBS)
}

/// FNV-1a: the same in every version and on every machine.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_names_keep_their_colour_in_every_list() {
        let fixed = ["carma", "magm", "or-magm", "lug", "lucid", "horus", "rr", "ff", "bf"];
        let names = ["exclusive", "magm/aegis", "or-magm/no-screen", "bf", "or-magm", "carma", "ff"];
        let all = Colours::of(names.into_iter(), &fixed);
        assert_eq!(["exclusive", "carma", "or-magm", "bf"].map(|name| all.class(name)), ["s0", "s1", "s3", "s1 dashed"]);
        for name in ["carma", "or-magm", "bf", "ff"] {
            assert_eq!(Colours::of([name].into_iter(), &fixed).class(name), all.class(name), "alone or with others");
        }
        let mut classes: Vec<&str> = names.iter().map(|name| all.class(name)).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), names.len(), "each has its own");
    }

    #[test]
    fn more_names_than_colours_differ_in_their_dashes() {
        let names: Vec<String> = (0..20).map(|name| name.to_string()).collect();
        let colours = Colours::of(names.iter().map(String::as_str), &[]);
        let classes: std::collections::BTreeSet<&str> = names.iter().map(|name| colours.class(name)).collect();
        assert_eq!(classes.len(), 20);
    }
}
