//! The page: what it is about, its sections, and how they were made.

use carma_sim::draw::{Element, page};

use super::energy::energy;
use super::estimates::estimates;
use super::headline::headline;
use super::jobs::{failures, largest};
use super::material::Material;
use super::parts::{joined, note, paragraph, section};
use super::recoveries::recoveries;
use super::sharing::sharing;
use super::utilisation::utilisation;
use super::waiting::waiting;
use crate::units::count;

const STYLE: &str = include_str!("report.css");

/// Sections, as the contents name them.
const CONTENTS: [(&str, &str); 9] = [
    ("utilisation", "Utilisation"),
    ("waiting", "Waiting"),
    ("sharing", "Collocation"),
    ("memory", "Out of memory"),
    ("estimates", "Estimates"),
    ("energy", "Energy and CO2"),
    ("largest", "Largest jobs"),
    ("failures", "Failures"),
    ("method", "Method"),
];

/// All of it as one file.
pub(super) fn html(material: &Material) -> String {
    let title = match &material.user {
        Some(user) => format!("GPU report of {user}"),
        None => "GPU report".to_owned(),
    };
    let facts = format!(
        "{} · {} · {} · policy {}",
        material.asked.words(),
        count(material.gpus.len(), "GPU"),
        material.status.world,
        material.status.policy
    );
    let mut parts = vec![Element::new("h1").text(&title), Element::of_class("p", "facts").text(&facts)];
    if material.jobs.is_empty() && material.gpus.iter().all(|(_, looks)| looks.minutes == 0) {
        parts.push(paragraph(
            "Nothing happened in this time that is known of: no job was submitted, and nothing is kept of the GPUs. Ask for more time, as in carma report \
             --since 30d, or come back when jobs have run.",
        ));
        parts.push(method(material));
        return page(&title, STYLE, &joined(&parts));
    }
    let link = |list: Element, (id, name): &(&str, &str)| list.child(&Element::new("a").attribute("href", &format!("#{id}")).text(name));
    parts.push(CONTENTS.iter().fold(Element::new("nav").attribute("aria-label", "Contents"), link));
    parts.push(headline(material));
    parts.extend([
        utilisation(material),
        waiting(material),
        sharing(material),
        recoveries(material),
        estimates(material),
        energy(material),
        largest(material),
        failures(material),
        method(material),
    ]);
    page(&title, STYLE, &joined(&parts))
}

fn method(material: &Material) -> Element {
    let said = [
        "Jobs are those that were submitted in this time, and all they did until now; those submitted before are not here, though they may have run in it. Of \
         jobs of others, readers without an operator's rights see what the manager shows them.",
        "GPUs were looked at every few seconds, and means are kept minute by minute; they count whoever used a GPU. Energy of a job is its share of what its \
         GPUs took: where several share one, by how busy the driver says each is, and for nothing less than what an idle GPU takes.",
        "To compare with one job a GPU, each job's measured run is put back to the time it takes alone by the model of interference of carma simulate, and all \
         are simulated on the same kinds of GPUs. That the simulator meets what was measured by the rules in force says that its schedule and its memory are \
         right; how much jobs slow each other down is from the same model in both directions, and is as good as that model.",
    ];
    let made =
        format!("Made on {} by carma {} with: {}", material.asked.moment(material.status.now), env!("CARGO_PKG_VERSION"), material.command);
    let page = section("method", "Method and limits").attribute("class", "method");
    let page = said.iter().fold(page, |page, words| page.child(&note(words)));
    let emulated = note("The GPUs are emulated: times and energy are theirs.");
    let page = if material.status.emulated { page.child(&emulated) } else { page };
    page.child(&note(&made))
}
