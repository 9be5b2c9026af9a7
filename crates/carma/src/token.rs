//! `carma token`: a secret that identifies a user over the network.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use carma_manager::token;
use clap::Args;
use nix::unistd::User;

#[derive(Debug, Args)]
#[command(after_help = "The token is printed only once. The file has one line per token: the name of the user and the \
SHA-256 of the token. To revoke a token, remove its line.\n\nExample:\n  sudo carma token ada --file /etc/carma/tokens")]
pub(crate) struct Arguments {
    /// The user who gets the token.
    user: String,
    /// Add the token to this file (manager.network.tokens) [default: print the line to add].
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let user = &arguments.user;
    ensure!(User::from_name(user)?.is_some(), "unknown user {user:?} on this machine");
    let secret = token::fresh()?;
    let line = format!("{user} {}", token::hash(&secret));
    if let Some(path) = &arguments.file {
        add(path, &line).with_context(|| format!("cannot add to {}", path.display()))?;
    } else {
        eprintln!("For the file of tokens: {line}");
    }
    writeln!(output, "{secret}")?;
    Ok(())
}

/// Adds a line to a file. Its last line may lack a line break: two tokens in one line would both be invalid.
fn add(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let end = if last == *b"\n" { "" } else { "\n" };
    // One write, as other processes may append too.
    file.write_all(format!("{end}{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_line_is_added_after_the_last_one_whether_or_not_it_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        add(&path, "ada 1").unwrap();
        add(&path, "bob 2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ada 1\nbob 2\n");
        fs::write(&path, "ada 1").unwrap();
        add(&path, "bob 2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ada 1\nbob 2\n");
    }
}
