//! Energy, its cost, and its CO2: by user, and by day.

use std::iter::once;

use carma_format::draw::Element;
use carma_manager::api::AttemptDetail;

use super::data::ReportData;
use super::parts::{Column, classes, figure, note, or_dash, paragraph, section, table};
use crate::manager::JOULES_PER_KILOWATT_HOUR;
use carma_format::energy as joules_in_words;

pub(super) fn energy(data: &ReportData) -> Element {
    let page = section("energy", "Energy and CO2");
    let users = data.users();
    if users.is_empty() {
        return page.child(&paragraph("No job that was submitted in this period has energy data."));
    }
    let report = &data.energy;
    let row = |name: &str, joules: f64, attempts: &[&AttemptDetail]| {
        let units = joules / JOULES_PER_KILOWATT_HOUR;
        let cost = report.price.map(|price| format!("{:.2} {}", units * price, report.currency));
        [
            name.to_owned(),
            attempts.len().to_string(),
            format!("{:.1}", data.gpu_hours(attempts.iter().copied())),
            joules_in_words(joules),
            or_dash(cost),
            or_dash(report.carbon.map(|carbon| grams(units * carbon))),
        ]
    };
    let everything: Vec<&AttemptDetail> = users.iter().flat_map(|(.., attempts)| attempts).copied().collect();
    let all = row("all", data.joules(), &everything);
    let rows = users.iter().map(|(name, joules, attempts)| row(name, *joules, attempts)).chain(once(all));
    let columns = [
        Column::Text("User"),
        Column::Number("Attempts"),
        Column::Number("GPU hours"),
        Column::Number("Energy"),
        Column::Number("Cost"),
        Column::Number("CO2"),
    ];
    let days: Vec<(String, f64)> = data.days().into_iter().map(|(day, joules)| (day, joules / JOULES_PER_KILOWATT_HOUR)).collect();
    let page = page.child(&table("Energy by user, of the jobs that were submitted in this period", columns, rows));
    let page = if days.len() > 1 {
        let label = "Energy of jobs by the day on which their attempts ended";
        page.child(&figure(&classes("days", label, "kWh a day", &days, |units| joules_in_words(units * JOULES_PER_KILOWATT_HOUR))))
    } else {
        page
    };
    match (report.price, report.carbon) {
        (Some(_), Some(_)) => page,
        _ => page.child(&note("Set price and carbon in [manager.energy] of the configuration to see costs and CO2.")),
    }
}

pub(super) fn grams(grams: f64) -> String {
    if grams < 1000.0 { format!("{grams:.0} g") } else { format!("{:.2} kg", grams / 1000.0) }
}
