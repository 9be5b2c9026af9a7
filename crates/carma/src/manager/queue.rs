//! `carma queue`: jobs that run and wait.

use std::io::{IsTerminal, Write};

use anyhow::Result;
use carma_core::MiB;
use carma_manager::api::{ArrayPlace, Counts, Queue, QueueQuery, QueueRow};
use clap::Args;

use super::common::{Listing, UserFilter, write_json};
use super::text::devices;
use carma_format::clock;
use carma_format::{left, right, write_table};

#[derive(Debug, Args)]
#[command(after_help = "\
TIME is how long a job has been in its state. GPU lists the GPUs a job has, \
by number; (2) is how many it waits for. MEM is the memory promised on each, \
or expected to be needed. WHY is how far a running job is and when it ends, \
and when a waiting one starts and what it waits for, as far as that is known: \
`carma why JOB` says it in full.\n\n\
Examples:\n  carma queue --mine\n  carma q -u ada --json | jq '.jobs[].id'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    users: UserFilter,
    #[command(flatten)]
    listing: Listing,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let Arguments { users, listing } = arguments;
    let (client, user) = (&mut listing.answer.manager.connect()?, users.user());
    let queue = match listing.most() {
        Some(most) => client.queue(&QueueQuery { user, each: Some(most), ..QueueQuery::default() })?,
        None => client.whole_queue(user)?,
    };
    if listing.answer.json {
        return write_json(&queue, output);
    }
    table(&queue, output)?;
    let Counts { running, waiting, held } = queue.counts;
    let more = (running + waiting + held).saturating_sub(queue.jobs.len() as u64);
    if more > 0 && users.user().is_none() {
        eprintln!("carma: {more} more; --all lists them");
    }
    if std::io::stdout().is_terminal() {
        writeln!(output, "{}", summary(&queue))?;
    }
    Ok(())
}

/// The name of a job in commands: its place in an array, or its number.
pub(crate) fn identity(id: carma_core::JobId, array: Option<ArrayPlace>) -> String {
    array.map_or_else(|| id.0.to_string(), |place| place.to_string())
}

fn table(queue: &Queue, output: &mut impl Write) -> Result<()> {
    let columns = [
        right("ID", 11),
        left("NAME", 12),
        left("USER", 8),
        left("STATE", 10),
        right("TIME", 9),
        left("GPU", 7),
        right("MEM", 6),
        left("WHY", usize::MAX),
    ];
    Ok(write_table(columns, &queue.jobs.iter().map(row).collect::<Vec<_>>(), output)?)
}

/// How far a running job is and when it ends; when a waiting one starts, and why it waits.
pub(crate) fn remark(job: &QueueRow) -> String {
    let starts = job.starts.map(|starts| format!("starts {}", starts.text()));
    match (&job.reason, starts) {
        (Some(reason), Some(starts)) => format!("{starts}: {reason}"),
        (Some(reason), None) => reason.clone(),
        (None, starts) => {
            let progress = job.progress.map(|share| format!("{:.0} %", share * 100.0));
            let ends = job.ends.map(|ends| format!("ends {}", ends.text()));
            let again = (job.attempts > 1).then(|| format!("attempt {}", job.attempts));
            [progress, starts, ends, again].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    }
}

fn row(job: &QueueRow) -> [String; 8] {
    let gibibytes = |MiB(size)| format!("{:.1}G", size as f64 / 1024.0);
    [
        identity(job.id, job.array),
        job.name.clone().unwrap_or_else(|| "-".to_owned()),
        job.user.clone(),
        job.state.to_string(),
        clock(job.for_seconds.get()),
        if job.devices.is_empty() { format!("({})", job.gpus) } else { devices(job.devices.iter().copied()) },
        job.memory.map_or_else(|| "-".to_owned(), gibibytes),
        remark(job),
    ]
}

fn summary(Queue { counts: Counts { running, waiting, held }, jobs, .. }: &Queue) -> String {
    let all = running + waiting + held;
    let more = all.saturating_sub(jobs.len() as u64);
    let more = if more > 0 { format!("; {more} not listed: --all, --limit") } else { String::new() };
    format!("{running} running, {waiting} waiting, {held} held{more}")
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, DeviceId, JobId, Priority, Seconds, ServerId};
    use carma_manager::api::PredictedTime;
    use carma_manager::store::{Phase, UnixMillis};

    use super::*;

    fn waiting(id: u64, name: &str, reason: &str) -> QueueRow {
        QueueRow {
            id: JobId(id),
            name: Some(name.to_owned()),
            user: "ada".to_owned(),
            uid: 1000,
            state: Phase::Queued,
            for_seconds: Seconds::from_secs(75),
            submitted: UnixMillis(0),
            priority: Priority(0),
            gpus: 2,
            attempts: 0,
            array: None,
            devices: Vec::new(),
            memory: Some(MiB(20_480)),
            progress: None,
            starts: None,
            ends: None,
            reason: Some(reason.to_owned()),
        }
    }

    #[test]
    fn the_queue_fits_the_terminal() {
        let gpu = |ordinal| DeviceId::gpu(ServerId(0), ordinal);
        let runs = QueueRow {
            state: Phase::Running,
            for_seconds: Seconds::from_secs(100_000),
            attempts: 2,
            devices: vec![gpu(0), gpu(1)],
            progress: Some(0.433),
            ends: Some(PredictedTime {
                earliest: Seconds::from_secs(1900),
                likely: Seconds::from_secs(2400),
                latest: Seconds::from_secs(3000),
            }),
            reason: None,
            ..waiting(9, "resnet50_imagenet_bs64", "")
        };
        let place = Some(ArrayPlace { array: ArrayId(12), index: 3 });
        let member =
            QueueRow { array: place, name: None, memory: None, ..waiting(15, "", "waits behind job 9; 3 ahead of it, and then some more") };
        let starts = PredictedTime { earliest: Seconds::from_secs(130), likely: Seconds::from_secs(200), latest: Seconds::from_secs(345) };
        let odd = QueueRow {
            starts: Some(starts),
            user: "a\x1b[31mb".to_owned(),
            state: Phase::Recovering,
            ..waiting(100_000, "\u{202e}evil", "is next, and waits for room")
        };
        let queue = Queue { counts: Counts { running: 1, waiting: 300, held: 0 }, jobs: vec![runs, member, odd], next: None };
        let mut table = Vec::new();
        super::table(&queue, &mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("queue", format!("{table}{}", summary(&queue)));
    }
}
