//! `carma usage`: a user's jobs, GPU time, energy and fair share.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::{UsageQuery, UserSummary};
use clap::Args;

use super::common::{AnswerArguments, TimeRange, current_user, write_json};
use carma_format::{count, energy, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
--since and --until select by when jobs and their attempts ended. GPU time counts \
a shared GPU in full for each job.\n\n\
Examples:\n  carma usage\n  carma usage ada --since 30d")]
pub(crate) struct Arguments {
    /// The user, by name or number [default: you].
    user: Option<String>,
    #[command(flatten)]
    range: TimeRange,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.answer.manager.connect()?;
    let (since, until) = arguments.range.span(client)?;
    let user = arguments.user.clone().unwrap_or_else(|| current_user().0.to_string());
    let summary = client.user(&user, &UsageQuery { since, until })?;
    if arguments.answer.json { write_json(&summary, output) } else { Ok(write!(output, "{}", printable_lines(&summary))?) }
}

fn printable_lines(summary: &UserSummary) -> String {
    let UserSummary { name, unfinished, succeeded, failed, cancelled, gpu_seconds, energy: used, shares, .. } = summary;
    let states: Vec<String> = unfinished.iter().map(|(phase, jobs)| format!("{jobs} {phase}")).collect();
    let states = if states.is_empty() { "none unfinished".to_owned() } else { states.join(", ") };
    let ended = count((succeeded + failed + cancelled) as usize, "job");
    let mut lines = vec![
        format!("user       {name}"),
        format!("jobs now   {states}"),
        format!("ended      {ended}: {succeeded} succeeded, {failed} failed, {cancelled} cancelled"),
        format!("GPU time   {:.1} h", gpu_seconds.get() / 3600.0),
        format!("energy     {}", energy(used.0)),
    ];
    lines.extend(shares.iter().map(|share| {
        let hours = share.gpu_seconds / 3600.0;
        format!("fair share {} in group {}: recently used {hours:.1} GPU hours, {:.1} GPUs now", share.share, share.group, share.gpus)
    }));
    lines.iter().map(|line| printable(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;
    use carma_manager::store::{Joules, Phase};

    use super::*;

    #[test]
    fn a_user_is_seen_in_a_few_lines() {
        let summary = UserSummary {
            uid: 1000,
            name: "ada".to_owned(),
            unfinished: [(Phase::Running, 2), (Phase::Queued, 12)].into(),
            succeeded: 100,
            failed: 7,
            cancelled: 1,
            gpu_seconds: Seconds::from_secs(90_000),
            energy: Joules(9e6),
            shares: Vec::new(),
        };
        insta::assert_snapshot!("usage", printable_lines(&summary));
    }
}
