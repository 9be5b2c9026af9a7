//! Estimates as people and programs read them.

use std::io::Write;

use anyhow::Result;
use carma_core::{Fraction, Watts};
use carma_estimate::estimators::{Answer, Question};
use carma_estimate::parse::Description;
use carma_estimate::utilisation::{Estimated, Utilisation};
use serde_json::{Value, json};

use super::{EstimatorAnswer, Subject};
use crate::manager::write_json;
use carma_format::{Terminal, aligned, labelled, thousands, wrapped, write_facts};

const MIB: f64 = (1 << 20) as f64;

/// One answer with a breakdown of the memory.
pub(super) fn one(subject: &Subject, question: &Question<'_>, answered: &EstimatorAnswer, output: &mut impl Write) -> Result<()> {
    let Ok((answer, upper)) = answered.result else { return Ok(()) };
    heading(subject, output)?;
    let sure = question.confidence * 100.0;
    writeln!(output, "\n{} MiB, at most {} MiB ({sure} % sure), by {}", mib(answer.bytes), mib(upper), answered.estimator)?;
    if answer.out_of_memory {
        writeln!(output, "It would run out of memory on this GPU.")?;
    }
    for (what, bytes) in parts(&answer) {
        writeln!(output, "{}", labelled(&format!("  {what}"), 16, &aligned(&format!("{} MiB", mib(bytes)), 13)))?;
    }
    utilisation(subject, output)?;
    notes(subject, output)
}

/// All answers, one per line.
pub(super) fn all(subject: &Subject, question: &Question<'_>, answers: &[EstimatorAnswer], output: &mut impl Write) -> Result<()> {
    heading(subject, output)?;
    let sure = format!("{} %", question.confidence * 100.0);
    let plain = Terminal::current().plain;
    if !plain {
        writeln!(output, "\n{:<22}{:>9} {sure:>9}  by", "estimator", "MiB")?;
    }
    for EstimatorAnswer { estimator, result, .. } in answers {
        let unknown = || "-".to_owned();
        let [bytes, upper, by] = match result {
            Ok((answer, upper)) => [mib(answer.bytes), mib(*upper), estimator.summary().to_owned()],
            Err(reason) => [unknown(), unknown(), reason.to_string()],
        };
        if plain {
            let most = format!("MiB at most, {sure} sure");
            write_facts(&estimator.to_string(), [("MiB", bytes), (most.as_str(), upper), ("by", by)], output)?;
        } else {
            writeln!(output, "{estimator:<22}{bytes:>9} {upper:>9}  {by}")?;
        }
    }
    utilisation(subject, output)?;
    notes(subject, output)
}

/// Expected GPU utilisation, from the models trained on A100.
fn utilisation(subject: &Subject, output: &mut impl Write) -> Result<()> {
    let Some(Utilisation { smact, smocc, drama, power }) = subject.utilisation() else { return Ok(()) };
    let share = |what: &str, counter: Estimated<Fraction>| {
        let Estimated { point, low, high } = counter.map(Fraction::get);
        format!("{what} {point:.2} ({low:.2} to {high:.2})")
    };
    writeln!(output, "on an A100, alone: {}, {}", share("SMACT", smact), share("SMOCC", smocc))?;
    let Estimated { point, low, high } = power.map(|Watts(watts)| watts);
    let indent = if Terminal::current().plain { "" } else { "                   " };
    writeln!(output, "{indent}{}, {point:.0} W ({low:.0} to {high:.0})", share("DRAMA", drama))?;
    Ok(())
}

fn heading(subject: &Subject, output: &mut impl Write) -> Result<()> {
    job(subject, output)?;
    let evidence = format!("{:?}", subject.stack.evidence).to_lowercase();
    writeln!(output, "stack {}: context of {:.0} MiB ({evidence})", subject.stack.name, subject.stack.context)?;
    Ok(())
}

/// The estimated job in one line.
pub(super) fn job(subject: &Subject, output: &mut impl Write) -> Result<()> {
    let batch = subject.training.batch;
    match &subject.description {
        Some(Description { format, model, .. }) => {
            let name = model.name.as_deref().unwrap_or("model");
            let (layers, parameters) = (model.layers.len(), model.parameters() as f64 / 1e6);
            writeln!(output, "{name} ({format}): {layers} layers, {parameters:.1} million parameters, batch {batch}")?;
        }
        None => writeln!(output, "recorded events")?,
    }
    Ok(())
}

pub(super) fn notes(subject: &Subject, output: &mut impl Write) -> Result<()> {
    for note in subject.notes() {
        writeln!(output, "{}", wrapped(&format!("note: {note}")))?;
    }
    let Some(description) = &subject.description else { return Ok(()) };
    let unknown = description.model.unknown_layers();
    if !unknown.is_empty() {
        let unknown = format!("layers not known, counted as their output kept once: {}", unknown.join(", "));
        writeln!(output, "{}", wrapped(&unknown))?;
    }
    Ok(())
}

/// Bytes by purpose, with the context.
fn parts(answer: &Answer) -> Vec<(&'static str, u64)> {
    let Some((breakdown, context)) = answer.breakdown else { return Vec::new() };
    vec![
        ("weights", breakdown.weights),
        ("gradients", breakdown.gradients),
        ("optimizer", breakdown.optimizer),
        ("activations", breakdown.activations),
        ("workspace", breakdown.workspace),
        ("fragmentation", breakdown.fragmentation),
        ("context", context),
    ]
}

/// A number of MiB with separated thousands.
fn mib(bytes: u64) -> String {
    thousands((bytes as f64 / MIB).round() as usize)
}

fn value(answered: &EstimatorAnswer) -> Value {
    let took = answered.took.as_secs_f64();
    match &answered.result {
        Ok((answer, upper)) => {
            let breakdown: serde_json::Map<String, Value> =
                parts(answer).into_iter().map(|(what, bytes)| (what.to_owned(), json!(bytes as f64 / MIB))).collect();
            json!({
                "estimator": answered.estimator.name(),
                "memory_mib": answer.bytes as f64 / MIB,
                "upper_mib": *upper as f64 / MIB,
                "out_of_memory": answer.out_of_memory,
                "breakdown_mib": breakdown,
                "seconds": took,
            })
        }
        Err(reason) => json!({ "estimator": answered.estimator.name(), "unanswered": reason.to_string() }),
    }
}

fn facts(subject: &Subject, question: &Question<'_>) -> Value {
    let description = subject.description.as_ref();
    json!({
        "format": description.map(|description| description.format.to_string()),
        "layers": description.map(|description| description.model.layers.len()),
        "parameters": description.map(|description| description.model.parameters()),
        "batch": subject.training.batch,
        "stack": subject.stack.name,
        "confidence": question.confidence,
        "utilisation": subject.utilisation(),
        "notes": subject.notes().collect::<Vec<_>>(),
        "unknown_layers": description.map(|description| description.model.unknown_layers()).unwrap_or_default(),
    })
}

pub(super) fn json(subject: &Subject, question: &Question<'_>, answered: &EstimatorAnswer, output: &mut impl Write) -> Result<()> {
    let mut object = facts(subject, question);
    if let (Some(object), Value::Object(answer)) = (object.as_object_mut(), value(answered)) {
        object.extend(answer);
    }
    write_json(&object, output)
}

pub(super) fn json_of_all(subject: &Subject, question: &Question<'_>, answers: &[EstimatorAnswer], output: &mut impl Write) -> Result<()> {
    let mut object = facts(subject, question);
    if let Some(object) = object.as_object_mut() {
        object.insert("estimates".to_owned(), answers.iter().map(value).collect());
    }
    write_json(&object, output)
}
