//! The view as text, for terminals that are not drawn on: all of it once, then a line per event.

use std::io::Write;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use carma_format::{Stream, Terminal, printable};
use carma_manager::api::QueueQuery;
use carma_manager::client::{Client, ClientError, Events};
use carma_manager::store::{StoredEvent, UnixMillis, label};
use jiff::tz::TimeZone;

use super::poll::{MOST_JOBS, beginning};
use super::view::pools_text;
use crate::gpus::write_managed;
use crate::manager::{moment, status_text, write_queue};

/// Between attempts to reach the manager.
const RETRY: Duration = Duration::from_secs(1);

/// Prints the state, and events until the process is ended if the output is a terminal.
pub(super) fn run(mut client: Client, output: &mut impl Write) -> Result<()> {
    let since = state(&mut client, output)?;
    if Terminal::current().output == Stream::File {
        return Ok(());
    }
    let mut last = Some(beginning(&mut client)?);
    writeln!(output, "\nEvents from now on, until Ctrl-C:")?;
    output.flush()?;
    let zone = TimeZone::system();
    loop {
        last = print(client.events(last)?, since, &zone, output)?.or(last);
        wait_for(&mut client)?;
    }
}

/// Waits for a manager that is away.
fn wait_for(client: &mut Client) -> Result<(), ClientError> {
    let mut away = false;
    thread::sleep(RETRY);
    while let Err(error) = client.status() {
        if !error.is_absence() {
            return Err(error);
        }
        if !std::mem::replace(&mut away, true) {
            eprintln!("carma: the manager does not answer; trying again");
        }
        thread::sleep(RETRY);
    }
    if away {
        eprintln!("carma: the manager answers again");
    }
    Ok(())
}

/// The manager, its GPUs, and its jobs; returns the time of the manager.
fn state(client: &mut Client, output: &mut impl Write) -> Result<UnixMillis> {
    let status = client.status()?;
    write!(output, "{}", status_text(&status, client.address()))?;
    let pools = if status.pools > 0 { client.pools()? } else { Vec::new() };
    pools_text(&pools).iter().try_for_each(|text| writeln!(output, "{text}"))?;
    write_managed(&client.gpus()?, output)?;
    let queue = client.queue(&QueueQuery { each: Some(MOST_JOBS), ..QueueQuery::default() })?;
    writeln!(output)?;
    if queue.jobs.is_empty() {
        writeln!(output, "nothing runs and nothing waits")?;
    } else {
        write_queue(&queue, true, output)?;
    }
    output.flush()?;
    Ok(status.now)
}

/// Prints events from this time on until the stream ends; returns the number of the last.
fn print(events: Events<'_>, since: UnixMillis, zone: &TimeZone, output: &mut impl Write) -> Result<Option<u64>> {
    let mut last = None;
    for event in events.map_while(Result::ok) {
        let Ok(StoredEvent { sequence, event, text }) = serde_json::from_str(&event.data) else { continue };
        last = Some(sequence);
        if event.at < since {
            continue;
        }
        let job = event.job.map_or_else(String::new, |job| format!("{} ", label(job, event.array)));
        writeln!(output, "{} {}", moment(event.at, zone), printable(&format!("{job}{text}")))?;
        output.flush()?;
    }
    Ok(last)
}
