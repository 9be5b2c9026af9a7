//! `carma energy`: energy of jobs, and its cost.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::{EnergyKind, EnergyOf, EnergyQuery, EnergyReport, EnergySum};
use carma_manager::store;
use clap::Args;
use jiff::civil::Date;
use jiff::{SignedDuration, Zoned};

use super::common::{AnswerArguments, TimeRange, UserFilter, write_json};
use carma_format::energy;
use carma_format::{left, right, write_table};

pub(crate) const JOULES_PER_KILOWATT_HOUR: f64 = 3.6e6;

#[derive(Debug, Args)]
#[command(after_help = "\
Attempts count when they end. Jobs that share a GPU share its energy. Price and \
carbon default to the configuration.\n\n\
Examples:\n  carma energy --by user --since 30d\n  carma energy --by day --mine --price 0.30 --carbon 380")]
pub(crate) struct Arguments {
    /// Group by job, user or day.
    #[arg(long, value_parser = ["job", "user", "day"], default_value = "user")]
    by: String,
    #[command(flatten)]
    users: UserFilter,
    #[command(flatten)]
    range: TimeRange,
    /// Price of a kilowatt-hour.
    #[arg(long)]
    price: Option<f64>,
    /// Grams of CO2 per kilowatt-hour.
    #[arg(long)]
    carbon: Option<f64>,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let by = match arguments.by.as_str() {
        "job" => EnergyKind::Job,
        "day" => EnergyKind::Day,
        _ => EnergyKind::User,
    };
    let client = &mut arguments.answer.manager.connect()?;
    let (since, until) = arguments.range.span(client)?;
    let query = EnergyQuery { by, ahead: Zoned::now().offset().seconds() / 60, user: arguments.users.user(), since, until };
    let mut report = client.energy(&query)?;
    // The currency is that of the configured price; a price on the command line is in a currency that only its user knows.
    if arguments.price.is_some_and(|price| report.price != Some(price)) {
        report.currency.clear();
    }
    report.price = arguments.price.or(report.price);
    report.carbon = arguments.carbon.or(report.carbon);
    if arguments.answer.json { write_json(&report, output) } else { table(&report, by, output) }
}

fn table(report: &EnergyReport, by: EnergyKind, output: &mut impl Write) -> Result<()> {
    let row = |name: String, attempts: u64, joules: f64| {
        let units = joules / JOULES_PER_KILOWATT_HOUR;
        let cost =
            report.price.map_or_else(|| "-".to_owned(), |price| format!("{:.2} {}", units * price, report.currency).trim_end().to_owned());
        let carbon = report.carbon.map_or_else(|| "-".to_owned(), |grams| grams_of(units * grams));
        [name, attempts.to_string(), energy(joules), cost, carbon]
    };
    let mut rows: Vec<_> = report.sums.iter().map(|sum| row(label(sum), sum.attempts, sum.energy.0)).collect();
    let (attempts, joules) = report.sums.iter().fold((0, 0.0), |(attempts, joules), sum| (attempts + sum.attempts, joules + sum.energy.0));
    rows.push(row("total".to_owned(), attempts, joules));
    let title = match by {
        EnergyKind::Job => "JOB",
        EnergyKind::User => "USER",
        EnergyKind::Day => "DAY",
    };
    let columns = [left(title, 24), right("RUNS", 9), right("ENERGY", 12), right("COST", 16), right("CO2", 12)];
    Ok(write_table(columns, &rows, output)?)
}

fn label(sum: &EnergySum) -> String {
    match &sum.of {
        EnergyOf::Job(job) => store::label(*job, sum.array).short(),
        EnergyOf::User { name, .. } => name.clone(),
        EnergyOf::Day(days) => day(*days),
    }
}

/// A day's date, counted from 1970-01-01.
fn day(days: u32) -> String {
    let day = Date::constant(1970, 1, 1).checked_add(SignedDuration::from_hours(i64::from(days) * 24));
    day.map_or_else(|_| days.to_string(), |day| day.to_string())
}

fn grams_of(grams: f64) -> String {
    if grams < 1000.0 { format!("{grams:.1} g") } else { format!("{:.2} kg", grams / 1000.0) }
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, JobId, UserId};
    use carma_manager::api::ArrayPlace;
    use carma_manager::store::Joules;

    use super::*;

    #[test]
    fn sums_come_with_a_total_and_what_it_costs() {
        let sum = |of, joules| EnergySum { of, name: None, array: None, energy: Joules(joules), attempts: 2 };
        let print = |of: [EnergyOf; 2], by, price| {
            let [first, second] = of;
            let place = if by == EnergyKind::Job { Some(ArrayPlace { array: ArrayId(6), index: 1 }) } else { None };
            let sums = vec![sum(first, 5.4e6), EnergySum { array: place, ..sum(second, 900.0) }];
            let mut output = Vec::new();
            table(&EnergyReport { sums, price, currency: "EUR".to_owned(), carbon: price.map(|_| 380.0) }, by, &mut output).unwrap();
            String::from_utf8(output).unwrap()
        };
        let users = [(1, "ada"), (2, "grace")].map(|(uid, name)| EnergyOf::User { uid: UserId(uid), name: name.to_owned() });
        let tables = [
            print(users, EnergyKind::User, Some(0.30)),
            print([EnergyOf::Day(20_000), EnergyOf::Day(20_001)], EnergyKind::Day, None),
            print([EnergyOf::Job(JobId(7)), EnergyOf::Job(JobId(12))], EnergyKind::Job, None),
        ];
        insta::assert_snapshot!("energy", tables.join("\n"));
    }
}
