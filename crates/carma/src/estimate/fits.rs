//! `--fits` and `--max-batch`: a job on several GPUs, and the largest batch for each.

use std::io::Write;

use anyhow::Result;
use carma_estimate::gpu::Gpu;
use carma_format::{Terminal, thousands, write_facts};
use serde_json::{Value, json};

use super::{EstimatorAnswer, Subject, answer};
use crate::manager::write_json;

const MIB: f64 = (1 << 20) as f64;

/// Batches above this are not tried.
const MOST: u64 = 1 << 24;

/// A job on one GPU.
pub(super) struct Fit {
    gpu: &'static Gpu,
    verdict: Verdict,
    /// Estimate and upper bound in bytes.
    need: (u64, u64),
    batches: Option<Batches>,
}

/// Whether a job fits a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Also if it needs as much as the upper bound.
    Fits,
    /// By the estimate, but not by the upper bound.
    Tight,
    /// Not even by the estimate.
    No,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "may not fit",
            Self::No => "does not fit",
        }
    }
}

/// The largest batches that fit; none if not even one sample does.
struct Batches {
    surely: Option<u64>,
    likely: Option<u64>,
}

/// Estimates for each GPU.
pub(super) fn fits(subject: &Subject, gpus: &[&'static Gpu]) -> Result<Vec<Fit>> {
    gpus.iter().map(|gpu| fit(subject, gpu)).collect()
}

fn fit(subject: &Subject, gpu: &'static Gpu) -> Result<Fit> {
    let stack = subject.stack_on(gpu);
    let mut question = subject.question();
    (question.stack, question.gpu) = (&stack, Some(gpu.bytes()));
    let EstimatorAnswer { estimator, result, .. } = answer(subject.best_estimator(), &question);
    let (found, upper) = result.map_err(|reason| anyhow::anyhow!("{estimator} {reason}"))?;
    let verdict = match (found.out_of_memory, upper > gpu.bytes()) {
        (true, _) => Verdict::No,
        (false, true) => Verdict::Tight,
        (false, false) => Verdict::Fits,
    };
    Ok(Fit { gpu, verdict, need: (found.bytes, upper), batches: None })
}

/// The same, with the largest batch for each GPU. `of` makes the subject with another batch.
pub(super) fn with_batches(
    subject: &Subject,
    gpus: &[&'static Gpu],
    precision: Precision,
    mut of: impl FnMut(u64) -> Result<Subject>,
) -> Result<Vec<Fit>> {
    let mut found = fits(subject, gpus)?;
    for fit in &mut found {
        let mut verdicts: Vec<(u64, Verdict)> = vec![(subject.training.batch, fit.verdict)];
        let gpu = fit.gpu;
        let mut verdict = |batch: u64| -> Result<Verdict> {
            if let Some((_, known)) = verdicts.iter().find(|(known, _)| *known == batch) {
                return Ok(*known);
            }
            let tried = self::fit(&of(batch)?, gpu)?.verdict;
            verdicts.push((batch, tried));
            Ok(tried)
        };
        let start = subject.training.batch;
        let likely = largest(start, precision, |batch| Ok(verdict(batch)? != Verdict::No))?;
        let surely = largest(likely.unwrap_or(start), precision, |batch| Ok(verdict(batch)? == Verdict::Fits))?;
        fit.batches = Some(Batches { surely, likely });
    }
    Ok(found)
}

/// How exactly the largest batch is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// To the sample.
    Exact,
    /// Within 2 %: each try costs a dry run.
    Coarse,
}

/// The largest batch for which `fits` holds, by doubling and bisection. `fits` is taken to be monotonic.
fn largest(start: u64, precision: Precision, mut fits: impl FnMut(u64) -> Result<bool>) -> Result<Option<u64>> {
    let (mut low, mut high) = (0, start.max(1));
    if fits(high)? {
        while high < MOST {
            low = high;
            high *= 2;
            if !fits(high)? {
                break;
            }
        }
    }
    let close = |low: u64, high: u64| high - low <= if precision == Precision::Exact { 1 } else { (low / 50).max(1) };
    while !close(low, high) {
        let middle = low + (high - low) / 2;
        if fits(middle)? { low = middle } else { high = middle }
    }
    Ok((low > 0).then_some(low))
}

/// The table.
pub(super) fn show(subject: &Subject, found: &[Fit], output: &mut impl Write) -> Result<()> {
    let sure = format!("{} %", subject.confidence() * 100.0);
    let mib = |bytes: u64| thousands((bytes as f64 / MIB).round() as usize);
    let size = |batch: Option<u64>| batch.map_or_else(|| "none".to_owned(), |batch| thousands(batch as usize));
    if Terminal::current().plain {
        for Fit { gpu, verdict, need: (bytes, upper), batches } in found {
            let mut facts = vec![
                ("memory of the GPU", format!("{} MiB", mib(gpu.bytes()))),
                ("needs", format!("{} MiB, at most {} MiB ({sure} sure)", mib(*bytes), mib(*upper))),
                ("this batch", verdict.word().to_owned()),
            ];
            facts.extend(batches.as_ref().map(|all| ("largest batch", format!("{}, {sure} sure: {}", size(all.likely), size(all.surely)))));
            write_facts(&gpu.name, facts, output)?;
        }
        return Ok(());
    }
    let with_batches = found.iter().any(|fit| fit.batches.is_some());
    write!(output, "\n{:<13}{:>8}{:>9}{:>9}  {:<12}", "GPU", "has MiB", "needs", sure, "this batch")?;
    writeln!(output, "{}", if with_batches { format!("{:>14}{sure:>9}", "largest batch") } else { String::new() })?;
    for Fit { gpu, verdict, need: (bytes, upper), batches } in found {
        write!(output, "{:<13}{:>8}{:>9}{:>9}  {:<12}", gpu.name, mib(gpu.bytes()), mib(*bytes), mib(*upper), verdict.word())?;
        let sizes = batches.as_ref().map(|Batches { surely, likely }| format!("{:>14}{:>9}", size(*likely), size(*surely)));
        writeln!(output, "{}", sizes.unwrap_or_default())?;
    }
    Ok(())
}

/// The same for programs.
pub(super) fn show_json(subject: &Subject, found: &[Fit], output: &mut impl Write) -> Result<()> {
    let fits: Vec<Value> = found
        .iter()
        .map(|Fit { gpu, verdict, need: (bytes, upper), batches }| {
            let mut value = json!({
                "gpu": gpu.name, "gpu_memory_mib": gpu.memory, "memory_mib": *bytes as f64 / MIB, "upper_mib": *upper as f64 / MIB,
                "fits": *verdict != Verdict::No, "surely_fits": *verdict == Verdict::Fits,
            });
            if let (Some(Batches { surely, likely }), Some(object)) = (batches, value.as_object_mut()) {
                object.insert("largest_batch".to_owned(), json!(likely));
                object.insert("largest_sure_batch".to_owned(), json!(surely));
            }
            value
        })
        .collect();
    write_json(&json!({ "batch": subject.training.batch, "confidence": subject.confidence(), "fits": fits }), output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_batch_is_found_from_any_start() {
        for limit in [1, 2, 3, 7, 8, 100, 1023, 1024] {
            for start in [1, 5, 64, 2000] {
                let found = largest(start, Precision::Exact, |batch| Ok(batch <= limit)).unwrap();
                assert_eq!(found, Some(limit), "from {start}");
                let mut tries = 0;
                let coarse = largest(start, Precision::Coarse, |batch| {
                    tries += 1;
                    Ok(batch <= limit)
                });
                let coarse = coarse.unwrap().unwrap();
                assert!(coarse <= limit && coarse * 51 + 50 >= limit * 50, "{coarse} of {limit}");
                assert!(tries <= 20, "{tries} tries");
            }
        }
        assert_eq!(largest(32, Precision::Exact, |_| Ok(false)).unwrap(), None);
        assert!(largest(32, Precision::Coarse, |_| Ok(true)).unwrap() >= Some(MOST / 2));
    }
}
