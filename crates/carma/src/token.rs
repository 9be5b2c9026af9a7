//! `carma token`: a secret by which a user is known over the network.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use carma_manager::token;
use clap::Args;
use nix::unistd::User;

#[derive(Debug, Args)]
#[command(after_help = "The token is printed once. The file has a line for each: the user's name and the \
SHA-256 of the token. Remove a line, and its token is worth nothing.")]
pub(crate) struct Arguments {
    /// The user whom it stands for.
    user: String,
    /// Add it to this file (manager.network.tokens), made where there is none;
    /// unset: print the line to add.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let user = &arguments.user;
    ensure!(User::from_name(user)?.is_some(), "there is no user {user:?} on this machine");
    let secret = token::fresh()?;
    let line = format!("{user} {}", token::hash(&secret));
    if let Some(path) = &arguments.file {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).with_context(|| format!("cannot add to {}", path.display()))?;
    } else {
        eprintln!("For the file of tokens: {line}");
    }
    writeln!(output, "{secret}")?;
    Ok(())
}
