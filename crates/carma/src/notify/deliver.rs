//! `carma deliver`: internal command that a manager starts for each message, as the receiving user.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_manager::notifications::{DELIVERED, Message, deliver};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file of the message
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let file = File::open(&arguments.file).with_context(|| format!("cannot read {}", arguments.file.display()))?;
    let message: Message = serde_json::from_reader(BufReader::new(file)).context("this is not a message")?;
    // Delivers even if the home folder is not accessible.
    let _ = std::env::var_os("HOME").map(std::env::set_current_dir);
    deliver(&message)?;
    Ok(writeln!(output, "{DELIVERED}")?)
}
