//! `carma queue`: jobs that run and wait.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use carma_core::{ArrayId, MiB};
use carma_manager::api::{ArrayPlace, Counts, Queue, QueueQuery, QueueRow};
use carma_manager::store::Phase;
use clap::Args;

use super::common::{Listing, UserFilter, write_json};
use super::text::devices;
use carma_format::{Stream, Terminal, clock, count, left, right, write_table};

#[derive(Debug, Args)]
#[command(after_help = "\
Running jobs come first, then waiting jobs in the order in which they are \
considered, then held jobs. RAN is the run time, TOTAL the time since submission. \
GPU lists the GPUs of the job; (2) means that it waits for two. RESVD is the memory \
reserved on each GPU, or the estimate; USED is the memory in use. WHY is the progress \
and the predicted end of a running job; for a waiting job, the predicted start and \
the reason why it waits: `carma why JOB` explains it in full. Waiting and held jobs \
of an array share a row; --members lists each.\n\n\
Examples:\n  carma queue --mine\n  carma q -u ada --json | jq '.jobs[].id'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    users: UserFilter,
    /// List each job of an array.
    #[arg(long)]
    members: bool,
    #[command(flatten)]
    listing: Listing,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let Arguments { users, members, listing } = arguments;
    let (client, user) = (&mut listing.answer.manager.connect()?, users.user());
    let queue = match listing.most() {
        Some(most) => client.queue(&QueueQuery { user, each: Some(most), ..QueueQuery::default() })?,
        None => client.whole_queue(user)?,
    };
    if listing.answer.json {
        return write_json(&queue, output);
    }
    table(&queue, !members, output)?;
    let Counts { running, waiting, held } = queue.counts;
    let more = (running + waiting + held).saturating_sub(queue.jobs.len() as u64);
    if more > 0 && users.user().is_none() {
        eprintln!("carma: {more} more; --all lists them");
    }
    if Terminal::current().output != Stream::File {
        writeln!(output, "{}", summary(&queue))?;
    }
    Ok(())
}

/// The name of a job in commands: its place in an array, or its number.
pub(crate) fn identity(id: carma_core::JobId, array: Option<ArrayPlace>) -> String {
    array.map_or_else(|| id.0.to_string(), |place| place.to_string())
}

/// Writes the queue. With groups, the waiting jobs of an array share a row.
pub(crate) fn table(queue: &Queue, groups: bool, output: &mut impl Write) -> Result<()> {
    let columns = [
        right("ID", 11),
        left("NAME", 12),
        left("USER", 8),
        left("STATE", 10),
        right("RAN", 8).spoken("run time"),
        right("TOTAL", 8).spoken("time since submission"),
        left("GPU", 7),
        right("RESVD", 6).spoken("reserved on each GPU"),
        right("USED", 6).spoken("in use"),
        left("WHY", usize::MAX).spoken("remark"),
    ];
    let mut grouped = BTreeSet::new();
    let rows: Vec<_> =
        queue.jobs.iter().filter_map(|job| if groups { group_or_row(queue, job, &mut grouped) } else { Some(row(job)) }).collect();
    Ok(write_table(columns, &rows, output)?)
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

/// A row for a job, or for all jobs of its array that do not run; none if that row is written.
fn group_or_row(queue: &Queue, job: &QueueRow, grouped: &mut BTreeSet<ArrayId>) -> Option<[String; 10]> {
    let counts = |place: ArrayPlace| queue.arrays.get(&place.array).filter(|counts| counts.waiting + counts.held > 1);
    let Some((place, Counts { running, waiting, held })) =
        job.array.filter(|_| !is_running(job)).and_then(|place| Some((place, counts(place)?)))
    else {
        return Some(row(job));
    };
    let parts = [(running, "running"), (waiting, "waiting"), (held, "held")].into_iter().filter(|(count, _)| **count > 0);
    let counts = parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
    let mut cells = row(job);
    let reason = std::mem::take(&mut cells[9]);
    cells[0] = format!("{}_*", place.array.0);
    cells[9] = if reason.is_empty() { counts } else { format!("{counts}; {reason}") };
    grouped.insert(place.array).then_some(cells)
}

const fn is_running(job: &QueueRow) -> bool {
    matches!(job.state, Phase::Starting | Phase::Running)
}

fn row(job: &QueueRow) -> [String; 10] {
    let gibibytes = |size: Option<MiB>| size.map_or_else(|| "-".to_owned(), |MiB(size)| format!("{:.1}G", size as f64 / 1024.0));
    [
        identity(job.id, job.array),
        job.name.clone().unwrap_or_else(|| "-".to_owned()),
        job.user.clone(),
        job.state.to_string(),
        if is_running(job) { clock(job.for_seconds.get()) } else { "-".to_owned() },
        clock(job.total_seconds.get()),
        match (job.devices.is_empty(), Terminal::current().plain) {
            (true, true) if job.gpus == 0 => "none needed".to_owned(),
            (true, true) => format!("none yet, waits for {}", count(job.gpus as usize, "GPU")),
            (true, false) => format!("({})", job.gpus),
            (false, _) => devices(job.devices.iter().copied()),
        },
        gibibytes(job.memory),
        gibibytes(job.used),
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
    use carma_manager::store::UnixMillis;

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
            used: None,
            total_seconds: Seconds::from_secs(90),
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
            used: Some(MiB(7_270)),
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
            QueueRow { array: place, name: None, memory: None, ..waiting(15, "", "is number 4 in the queue; job 9 is next, and more") };
        let starts = PredictedTime { earliest: Seconds::from_secs(130), likely: Seconds::from_secs(200), latest: Seconds::from_secs(345) };
        let odd = QueueRow {
            starts: Some(starts),
            user: "a\x1b[31mb".to_owned(),
            state: Phase::Recovering,
            ..waiting(100_000, "\u{202e}evil", "is next in the queue: no GPU has room")
        };
        let next = QueueRow { array: Some(ArrayPlace { array: ArrayId(12), index: 4 }), ..member.clone() };
        let arrays = [(ArrayId(12), Counts { running: 2, waiting: 95, held: 1 })].into();
        let queue = Queue { counts: Counts { running: 1, waiting: 300, held: 0 }, jobs: vec![runs, member, odd, next], arrays, next: None };
        let mut table = Vec::new();
        super::table(&queue, true, &mut table).unwrap();
        let mut plain = Vec::new();
        Terminal { plain: true, ..Terminal::UNKNOWN }.replaced(|| super::table(&queue, true, &mut plain)).unwrap();
        insta::assert_snapshot!("queue-plain", String::from_utf8(plain).unwrap());
        let table = String::from_utf8(table).unwrap();
        assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("queue", format!("{table}{}", summary(&queue)));
    }
}
