//! Workloads as tables, TOML and JSON.

use std::io::Write;

use anyhow::Result;
use carma_core::Watts;
use carma_format::{Terminal, count, write_facts};
use carma_sim::{Catalogue, RankProfile, Workload};
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::find;
use crate::manager::write_json;

/// Columns of a name.
const NAME: usize = 32;

/// Prints all workloads.
pub(super) fn list(catalogue: &Catalogue, json: bool, output: &mut impl Write) -> Result<()> {
    if json {
        let all: Vec<Json> = catalogue.iter().map(|(_, workload)| facts(catalogue, workload)).collect();
        return write_json(&all, output);
    }
    let plain = Terminal::current().plain;
    if plain {
        writeln!(output, "{}", count(catalogue.iter().count(), "workload"))?;
    } else {
        writeln!(output, "{:<NAME$} GPUs  time s    peak MiB SMACT SMOCC DRAMA    W", "")?;
    }
    for (_, workload) in catalogue.iter() {
        let mean = |of: fn(&RankProfile) -> f64| workload.ranks.iter().map(of).sum::<f64>() / workload.ranks.len() as f64;
        let counters = [mean(|rank| rank.smact.get()), mean(|rank| rank.smocc.get()), mean(|rank| rank.drama.get())];
        let counters = counters.map(|counter| format!("{counter:.3}"));
        let powers: Option<Vec<f64>> = workload.ranks.iter().map(|rank| rank.power.map(|Watts(power)| power)).collect();
        let power = powers.map_or_else(|| "-".to_owned(), |all| format!("{:.0}", all.iter().sum::<f64>() / all.len() as f64));
        let peaks = workload.ranks.iter().map(|rank| rank.peak.0.to_string()).collect::<Vec<_>>().join("+");
        let (gpus, seconds) = (workload.gpus(), workload.seconds.get());
        if plain {
            let [smact, smocc, drama] = counters;
            let facts = [
                ("GPUs", gpus.to_string()),
                ("time in seconds", format!("{seconds:.0}")),
                ("peak MiB", peaks),
                ("SMACT", smact),
                ("SMOCC", smocc),
                ("DRAMA", drama),
                ("W", power),
            ];
            write_facts(&workload.name, facts, output)?;
            continue;
        }
        // A name is for copying: it gets its own line rather than being cut.
        let name = if workload.name.chars().count() > NAME { format!("{}\n{:NAME$}", workload.name, "") } else { workload.name.clone() };
        writeln!(output, "{name:<NAME$} {gpus:>4} {seconds:>7.0} {peaks:>11} {} {power:>4}", counters.join(" "))?;
    }
    writeln!(output, "\nEach has its GPUs alone. SMACT, SMOCC, DRAMA and W are means over time and GPUs;")?;
    writeln!(output, "`carma catalogue show NAME` has all of it.")?;
    Ok(())
}

/// Prints one workload.
pub(super) fn show(catalogue: &Catalogue, name: &str, json: bool, output: &mut impl Write) -> Result<()> {
    let workload = find(catalogue, name)?;
    if json {
        return write_json(&facts(catalogue, workload), output);
    }
    Ok(write!(output, "{}", file(catalogue, [workload])?)?)
}

/// Workloads as a catalogue file, with the sources they name.
pub(super) fn file<'a>(catalogue: &Catalogue, workloads: impl IntoIterator<Item = &'a Workload>) -> Result<String> {
    let mut sources = Table::new();
    let mut entries = Vec::new();
    for workload in workloads {
        let source = catalogue.sources().get(&workload.source).cloned().unwrap_or_default();
        sources.insert(workload.source.clone(), Value::String(source));
        entries.push(Value::Table(entry(workload)));
    }
    let file = [("source".to_owned(), Value::Table(sources)), ("workload".to_owned(), Value::Array(entries))];
    Ok(toml::to_string(&Table::from_iter(file))?)
}

/// A workload in the form of a catalogue file.
fn entry(workload: &Workload) -> Table {
    let text = |text: &str| Some(Value::String(text.to_owned()));
    let number = |number: Option<u32>| number.map(|number| Value::Integer(number.into()));
    let list = |of: fn(&RankProfile) -> Value| Some(Value::Array(workload.ranks.iter().map(of).collect()));
    let powers: Option<Vec<Value>> = workload.ranks.iter().map(|rank| rank.power.map(|Watts(power)| Value::Float(power))).collect();
    let aliases: Vec<Value> = workload.aliases.iter().cloned().map(Value::String).collect();
    let all = [
        ("name", text(&workload.name)),
        ("model", text(&workload.model)),
        ("dataset", text(&workload.dataset)),
        ("batch", number(workload.batch)),
        ("epochs", number(workload.epochs)),
        ("family", text(&workload.family)),
        ("gpus", number(Some(workload.gpus()))),
        ("seconds", Some(Value::Float(workload.seconds.get()))),
        ("peak_mib", list(|rank| Value::Integer(rank.peak.0.cast_signed()))),
        ("smact", list(|rank| Value::Float(rank.smact.get()))),
        ("smocc", list(|rank| Value::Float(rank.smocc.get()))),
        ("drama", list(|rank| Value::Float(rank.drama.get()))),
        ("utilisation", list(|rank| Value::Float(rank.utilisation.get()))),
        ("power_w", powers.map(Value::Array)),
        ("aliases", Some(aliases).filter(|aliases| !aliases.is_empty()).map(Value::Array)),
        ("source", text(&workload.source)),
        ("note", workload.note.as_deref().and_then(text)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// A workload for programs: as in a file, with its source written out.
fn facts(catalogue: &Catalogue, workload: &Workload) -> Json {
    let mut facts = json!(entry(workload));
    facts["source_text"] = json!(catalogue.sources().get(&workload.source));
    facts
}
