//! The headline figures.

use carma_core::Outcome;
use carma_format::draw::Element;
use carma_format::thousands;

use super::energy::grams;
use super::material::{Material, Spread, out_of_memory, waited};
use super::parts::percent;
use crate::manager::JOULES_PER_KILOWATT_HOUR;
use carma_format::{count, duration, energy, memory};

pub(super) fn headline(material: &Material) -> Element {
    let tiles = [jobs(material), waiting(material), busy(material), in_use(material), oom(material), used(material)];
    let tile = |list: Element, (name, value, beside): &(&str, String, String)| {
        let value = Element::of_class("dd", "value").text(value);
        let beside = Element::of_class("dd", "beside").text(beside);
        list.child(&Element::new("div").child(&Element::new("dt").text(name)).child(&value).child(&beside))
    };
    tiles.iter().fold(Element::of_class("dl", "tiles"), tile)
}

type Tile = (&'static str, String, String);

fn jobs(material: &Material) -> Tile {
    let over = material.jobs.iter().filter_map(|job| job.outcome());
    let (succeeded, others): (Vec<&Outcome>, Vec<&Outcome>) = over.partition(|outcome| outcome.succeeded());
    let open = material.jobs.len() - succeeded.len() - others.len();
    let parts = [(succeeded.len(), "succeeded"), (others.len(), "did not"), (open, "not over")];
    let words: Vec<String> =
        parts.iter().filter(|(many, _)| *many > 0).map(|(many, words)| format!("{} {words}", thousands(*many))).collect();
    ("Jobs", thousands(material.jobs.len()), words.join(", "))
}

fn waiting(material: &Material) -> Tile {
    let waits = Spread::of(material.jobs.iter().filter_map(waited));
    ("Median wait", duration(waits.share(0.5)), format!("one in twenty longer than {}", duration(waits.share(0.95))))
}

fn busy(material: &Material) -> Tile {
    let (mean, known) = over_gpus(material, |looks| looks.all.busy.get());
    let hours = material.gpu_hours(material.attempts().map(|(_, attempt)| attempt));
    let name = if material.gpus.iter().any(|(_, looks)| looks.smact) { "Mean SM activity" } else { "Mean GPU utilisation" };
    (name, seen(known, mean), format!("{hours:.1} GPU hours of jobs"))
}

fn in_use(material: &Material) -> Tile {
    let all: f64 = material.gpus.iter().map(|(gpu, _)| gpu.memory.0 as f64).sum();
    let (mean, known) = over_gpus(material, |looks| looks.all.memory.get());
    let used = mean * material.gpus.len() as f64;
    let words = format!("of {} on {}", memory(carma_core::MiB(all as u64)), count(material.gpus.len(), "GPU"));
    ("Memory in use", seen(known, used / all.max(1.0)), words)
}

fn oom(material: &Material) -> Tile {
    let attempts = material.attempts().filter(|(_, attempt)| out_of_memory(attempt)).count();
    let met = material.jobs.iter().filter(|job| job.attempts.iter().any(out_of_memory));
    let recovered = met.filter(|job| job.outcome().is_some_and(Outcome::succeeded)).count();
    ("Ran out of memory", count(attempts, "time"), format!("{} recovered", count(recovered, "job")))
}

fn used(material: &Material) -> Tile {
    let joules = material.joules();
    let units = joules / JOULES_PER_KILOWATT_HOUR;
    let carbon = material.energy.carbon.map(|carbon| format!("{} of CO2", grams(units * carbon)));
    let cost = material.energy.price.map(|price| format!("{:.2} {}", units * price, material.energy.currency));
    let beside: Vec<String> = carbon.into_iter().chain(cost).collect();
    ("Energy of jobs", energy(joules), beside.join(", "))
}

fn seen(known: bool, share: f64) -> String {
    if known { percent(share) } else { "not seen".to_owned() }
}

/// The mean over GPUs with data, and whether there are any.
fn over_gpus(material: &Material, of: fn(&super::looks::Looks) -> Option<f64>) -> (f64, bool) {
    let values = Spread::of(material.gpus.iter().filter_map(|(_, looks)| of(looks)));
    (values.mean(), values.count() > 0)
}
