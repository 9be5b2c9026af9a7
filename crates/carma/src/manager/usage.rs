//! `carma usage`: a user's jobs, GPU time, energy and fair share.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::{JobCounts, QuotaDetail, UsageQuery, UserSummary, UserUsage};
use clap::Args;

use super::common::{AnswerArguments, TimeRange, current_user, write_json};
use carma_format::{count, energy, labelled, printable};

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
    let usage = client.user(&user, &UsageQuery { since, until })?;
    if arguments.answer.json { write_json(&usage, output) } else { Ok(write!(output, "{}", printable_lines(&usage))?) }
}

fn printable_lines(usage: &UserUsage) -> String {
    let UserUsage { summary: UserSummary { name, jobs, gpu_time, energy: used, .. }, shares, quota } = usage;
    let JobCounts { waiting, held, running, succeeded, failed, out_of_memory, stopped } = jobs;
    let ended = count((succeeded + failed + out_of_memory + stopped) as usize, "job");
    let line = |label: &str, value: &str| labelled(label, 11, value);
    let mut lines = vec![
        line("user", name),
        line("jobs now", &format!("{running} running, {waiting} waiting, {held} held")),
        line("ended", &format!("{ended}: {succeeded} succeeded, {failed} failed, {out_of_memory} out of memory, {stopped} stopped")),
        line("GPU time", &format!("{:.1} h", gpu_time.get() / 3600.0)),
        line("energy", &energy(used.0)),
    ];
    lines.push(line("quota", &quota_line(quota)));
    lines.extend(shares.iter().map(|share| {
        let hours = share.gpu_seconds / 3600.0;
        let text = format!("{} in group {}: recently used {hours:.1} GPU hours, {:.1} GPUs now", share.share, share.group, share.gpus);
        line("fair share", &text)
    }));
    lines.iter().map(|line| printable(line) + "\n").collect()
}

/// The limited parts of a quota: what is used now, and the limit.
fn quota_line(quota: &QuotaDetail) -> String {
    let number = |used: u32, limit: Option<u32>, what: &str| Some(format!("{used} of {} {what}", limit?));
    let memory = || Some(format!("{} of {} GPU memory", quota.memory, quota.memory_limit?));
    let parts = [number(quota.jobs, quota.jobs_limit, "running jobs"), number(quota.gpus, quota.gpus_limit, "GPUs"), memory()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use carma_core::{MiB, Seconds, UserId};
    use carma_manager::store::Joules;

    use super::*;

    #[test]
    fn the_usage_of_a_user_fits_a_few_lines() {
        let jobs = JobCounts { waiting: 12, running: 2, succeeded: 100, failed: 7, stopped: 1, ..JobCounts::default() };
        let (gpu_time, energy) = (Seconds::from_secs(90_000), Joules(9e6));
        let summary = UserSummary { user: UserId(1000), name: "ada".to_owned(), jobs, gpu_time, energy };
        let quota =
            QuotaDetail { jobs: 2, gpus: 3, gpus_limit: Some(4), memory: MiB(20_480), memory_limit: Some(MiB(81_920)), jobs_limit: None };
        insta::assert_snapshot!("usage", printable_lines(&UserUsage { summary, shares: Vec::new(), quota }));
        assert_eq!(quota_line(&QuotaDetail { jobs: 2, ..QuotaDetail::default() }), "none");
    }
}
