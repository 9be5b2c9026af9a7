//! The terminal of this process, as it is found.

use std::env;
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};

use carma_format::{Surroundings, Terminal};
use ratatui::crossterm::terminal::size;

/// Looks at the environment and the streams.
pub(crate) fn found(plain: bool) -> Terminal {
    Terminal::decide(&Surroundings {
        plain,
        variable: &|name| env::var(name).ok(),
        output_is_terminal: stdout().is_terminal(),
        errors_are_terminal: stderr().is_terminal(),
        columns: size().ok().map(|(columns, _)| columns),
    })
}

/// Whether `--plain` is among the arguments, before they are parsed: errors in them are plain too.
pub(crate) fn requested(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.take_while(|word| word != "--").any(|word| word == "--plain")
}
