//! What people see of a plan.

use std::io::Write;

use anyhow::Result;
use carma_format::wrapped;

use super::plan::{AddedOption, Plan};
use super::submission::Submission;
use crate::units::quoted;

/// What was added and kept, a line for each.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let added = plan.additions.iter().map(|AddedOption { option, reason }| format!("added {option}: {reason}"));
    added.chain(plan.notes.iter().cloned()).collect()
}

/// The command, and the reasons.
pub(super) fn dry_run(submission: &Submission<'_>, output: &mut impl Write) -> Result<()> {
    let name = submission.plan.recovery.map(|_| submission.batch.name.as_str());
    let words: Vec<String> = submission.arguments(name).iter().map(|word| shown(word)).collect();
    writeln!(output, "sbatch {}", words.join(" "))?;
    for note in notes(submission.plan) {
        writeln!(output, "{}", wrapped(&note))?;
    }
    if let Some(recovery) = submission.plan.recovery {
        let note = format!(
            "The script runs under carma sbatch-run: if it runs out of GPU memory, it goes back into the queue with more shards, up to the {} of a \
             GPU, at most {} times.",
            recovery.gpu.shards, recovery.retries
        );
        writeln!(output, "{}", wrapped(&note))?;
    }
    Ok(writeln!(output, "Nothing was submitted.")?)
}

/// A word for a shell. Options of Slurm need no quotes.
fn shown(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_=:.,/%+@".contains(letter));
    if plain { word.to_owned() } else { quoted(word).into_owned() }
}
