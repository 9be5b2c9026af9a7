//! `carma notify`: the user's notifications, and their channels.

mod add;
mod deliver;

pub(crate) use deliver::{Arguments as DeliverArguments, run as deliver};

use std::io::Write;

use anyhow::{Result, ensure};
use carma_manager::api::{Channel, Notification};
use clap::{Args, Subcommand};

use crate::manager::{AnswerArguments, Manager, write_json};
use add::AddArguments;
use carma_format::count;
use carma_format::{left, printable, right, write_table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List your notifications.
    #[command(after_help = "Example:\n  carma notify list")]
    List(AnswerArguments),
    /// Add a notification: webhook, mail, desktop or command.
    Add(AddArguments),
    /// Remove notifications.
    Remove(RemoveArguments),
    /// Send a test message over all channels.
    #[command(after_help = "Example:\n  carma notify test")]
    Test(AnswerArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma notify remove 2")]
pub(crate) struct RemoveArguments {
    /// Their numbers in `carma notify list`.
    #[arg(required_unless_present = "all", value_name = "N")]
    numbers: Vec<usize>,
    /// All of them.
    #[arg(long, conflicts_with = "numbers")]
    all: bool,
    #[command(flatten)]
    manager: Manager,
}

pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::List(arguments) => list(arguments, output),
        Command::Add(arguments) => add(arguments, output),
        Command::Remove(arguments) => remove(arguments, output),
        Command::Test(arguments) => test(arguments, output),
    }
}

fn list(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let notifications = arguments.manager.connect()?.notifications()?;
    if arguments.json {
        return write_json(&notifications, output);
    }
    if notifications.is_empty() {
        eprintln!("carma: you have no notifications; see carma notify add --help");
        return Ok(());
    }
    let row = |(place, notification): (usize, &Notification)| [(place + 1).to_string(), occasions(notification), shown(&notification.by)];
    let rows: Vec<_> = notifications.iter().enumerate().map(row).collect();
    Ok(write_table([right("N", 3), left("WHEN", 26), left("HOW", 200)], &rows, output)?)
}

fn add(arguments: &AddArguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let mut notifications = client.notifications()?;
    let notification = arguments.notification();
    // The same channel again replaces its events.
    match notifications.iter_mut().find(|other| other.by == notification.by) {
        Some(other) => other.on.clone_from(&notification.on),
        None => notifications.push(notification.clone()),
    }
    client.set_notifications(&notifications)?;
    Ok(writeln!(output, "notifications on {}: {}", occasions(&notification).replace(',', ", "), printable(&notification.by.to_string()))?)
}

fn remove(arguments: &RemoveArguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let notifications = client.notifications()?;
    for number in &arguments.numbers {
        ensure!((1..=notifications.len()).contains(number), "notification {number} does not exist: see carma notify list");
    }
    let is_chosen = |place: usize| arguments.all || arguments.numbers.contains(&(place + 1));
    let (removed, kept): (Vec<_>, Vec<_>) = notifications.into_iter().enumerate().partition(|(place, _)| is_chosen(*place));
    let kept: Vec<Notification> = kept.into_iter().map(|(_, notification)| notification).collect();
    client.set_notifications(&kept)?;
    Ok(writeln!(output, "removed {}", count(removed.len(), "notification"))?)
}

fn test(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let tried = arguments.manager.connect()?.try_notifications()?;
    if arguments.json {
        write_json(&tried, output)?;
    } else {
        for (place, tried) in tried.iter().enumerate() {
            let result = tried.problem.as_ref().map_or_else(|| "sent".to_owned(), |problem| format!("FAILED: {problem}"));
            writeln!(output, "{} {}: {}", place + 1, printable(&tried.by.to_string()), printable(&result))?;
        }
    }
    ensure!(!tried.is_empty(), "you have no notifications; see carma notify add --help");
    let failed = tried.iter().filter(|tried| tried.problem.is_some()).count();
    ensure!(failed == 0, "{failed} of {} failed", count(tried.len(), "notification"));
    Ok(())
}

/// When a notification is sent, in one word.
fn occasions(notification: &Notification) -> String {
    let word = |occasion| serde_json::to_value(occasion).ok().and_then(|word| word.as_str().map(str::to_owned));
    notification.on.iter().filter_map(word).collect::<Vec<_>>().join(",")
}

/// The channel, as its user may see it; the address of a webhook stays secret even there.
fn shown(channel: &Channel) -> String {
    match channel {
        Channel::Command(command) => format!("command: {command}"),
        other => other.to_string(),
    }
}
