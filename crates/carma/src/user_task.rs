//! `carma user-task`: internal command that a manager runs as a user, for the user's own folders.

use std::io::Write;

use anyhow::Result;
use carma_manager::launch::UserTask;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The task, in JSON
    task: String,
}

/// Does the task, and prints the answer.
pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<()> {
    let task: UserTask = serde_json::from_str(&arguments.task)?;
    Ok(writeln!(output, "{}", task.perform()?)?)
}
