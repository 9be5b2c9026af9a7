//! The headline figures.

use carma_core::Outcome;
use carma_format::draw::Element;
use carma_format::thousands;

use super::data::{ReportData, Spread, out_of_memory, waited};
use super::energy::grams;
use super::parts::percent;
use crate::manager::JOULES_PER_KILOWATT_HOUR;
use carma_format::{count, duration, energy, memory};

pub(super) fn headline(data: &ReportData) -> Element {
    let tiles = [jobs(data), waiting(data), busy(data), in_use(data), oom(data), used(data)];
    let tile = |list: Element, (name, value, beside): &(&str, String, String)| {
        let value = Element::of_class("dd", "value").text(value);
        let beside = Element::of_class("dd", "beside").text(beside);
        list.child(&Element::new("div").child(&Element::new("dt").text(name)).child(&value).child(&beside))
    };
    tiles.iter().fold(Element::of_class("dl", "tiles"), tile)
}

type Tile = (&'static str, String, String);

fn jobs(data: &ReportData) -> Tile {
    let over = data.jobs.iter().filter_map(|job| job.outcome());
    let (succeeded, others): (Vec<&Outcome>, Vec<&Outcome>) = over.partition(|outcome| outcome.succeeded());
    let open = data.jobs.len() - succeeded.len() - others.len();
    let parts = [(succeeded.len(), "succeeded"), (others.len(), "did not"), (open, "not over")];
    let text: Vec<String> = parts.iter().filter(|(many, _)| *many > 0).map(|(many, text)| format!("{} {text}", thousands(*many))).collect();
    ("Jobs", thousands(data.jobs.len()), text.join(", "))
}

fn waiting(data: &ReportData) -> Tile {
    let waits = Spread::of(data.jobs.iter().filter_map(waited));
    ("Median wait", duration(waits.share(0.5)), format!("5 % longer than {}", duration(waits.share(0.95))))
}

fn busy(data: &ReportData) -> Tile {
    let (mean, known) = over_gpus(data, |samples| samples.all.busy.get());
    let hours = data.gpu_hours(data.attempts().map(|(_, attempt)| attempt));
    let name = if data.gpus.iter().any(|(_, samples)| samples.smact) { "Mean SM activity" } else { "Mean GPU utilisation" };
    (name, seen(known, mean), format!("{hours:.1} GPU hours of jobs"))
}

fn in_use(data: &ReportData) -> Tile {
    let all: f64 = data.gpus.iter().map(|(gpu, _)| gpu.memory.0 as f64).sum();
    let (mean, known) = over_gpus(data, |samples| samples.all.memory.get());
    let used = mean * data.gpus.len() as f64;
    let servers = if data.servers() > 1 { format!(" of {}", count(data.servers(), "server")) } else { String::new() };
    let text = format!("of {} on {}{servers}", memory(carma_core::MiB(all as u64)), count(data.gpus.len(), "GPU"));
    ("Memory in use", seen(known, used / all.max(1.0)), text)
}

fn oom(data: &ReportData) -> Tile {
    let attempts = data.attempts().filter(|(_, attempt)| out_of_memory(attempt)).count();
    let met = data.jobs.iter().filter(|job| job.attempts.iter().any(out_of_memory));
    let recovered = met.filter(|job| job.outcome().is_some_and(Outcome::succeeded)).count();
    ("Ran out of memory", count(attempts, "time"), format!("{} recovered", count(recovered, "job")))
}

fn used(data: &ReportData) -> Tile {
    let joules = data.joules();
    let units = joules / JOULES_PER_KILOWATT_HOUR;
    let carbon = data.energy.carbon.map(|carbon| format!("{} of CO2", grams(units * carbon)));
    let cost = data.energy.price.map(|price| format!("{:.2} {}", units * price, data.energy.currency));
    let beside: Vec<String> = carbon.into_iter().chain(cost).collect();
    ("Energy of jobs", energy(joules), beside.join(", "))
}

fn seen(known: bool, share: f64) -> String {
    if known { percent(share) } else { "no samples".to_owned() }
}

/// The mean over GPUs with data, and whether there are any.
fn over_gpus(data: &ReportData, of: fn(&super::samples::GpuSamples) -> Option<f64>) -> (f64, bool) {
    let values = Spread::of(data.gpus.iter().filter_map(|(_, samples)| of(samples)));
    (values.mean(), values.count() > 0)
}
