//! `carma man` and `carma completions`: the command line described for `man` and for shells.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma man | man -l -")]
pub(crate) struct ManArguments {
    /// Write one page per command to this folder, instead of printing the first page.
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Shells that can complete our commands.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the manual's first page, or writes all of them.
pub(crate) fn man(arguments: &ManArguments, command: clap::Command, output: &mut impl Write) -> Result<()> {
    let pages = pages(command)?;
    let Some(folder) = &arguments.output else {
        return pages.first().map_or(Ok(()), |page| Ok(output.write_all(&page.text)?));
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for page in &pages {
        let file = folder.join(format!("{}.1", page.name));
        fs::write(&file, &page.text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    eprintln!("carma: wrote {} pages to {}", pages.len(), folder.display());
    Ok(())
}

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell, command: &clap::Command, output: &mut impl Write) -> Result<()> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    // The generator panics on a write error, such as a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(command), "carma", &mut script);
    Ok(output.write_all(&script)?)
}

/// A command without its hidden parts, which the generator would offer.
fn visible(command: &clap::Command) -> clap::Command {
    clap::Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .visible_aliases(command.get_visible_aliases().map(str::to_owned))
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()).map(visible))
}

/// A page of the manual.
struct Page {
    name: String,
    text: Vec<u8>,
}

/// All pages, the program's own first.
fn pages(command: clap::Command) -> Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    describe(&command, None, &mut pages)?;
    Ok(pages)
}

fn describe(command: &clap::Command, above: Option<&str>, pages: &mut Vec<Page>) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    Man::new(command.clone()).source(concat!("carma ", env!("CARGO_PKG_VERSION"))).render(&mut text)?;
    let below: Vec<&clap::Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let named = below.iter().filter_map(|command| command.get_display_name());
    see_also(above.into_iter().chain(named).collect(), &mut text)?;
    pages.push(Page { name: name.clone(), text });
    below.into_iter().try_for_each(|command| describe(command, Some(&name), pages))
}

fn see_also(names: Vec<&str>, text: &mut Vec<u8>) -> Result<()> {
    let last = names.len().saturating_sub(1);
    let others = names.into_iter().enumerate().flat_map(|(place, name)| [bold(name), roman(if place == last { "(1)" } else { "(1), " })]);
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        Roff::new().control("SH", ["SEE ALSO"]).text(others).to_writer(text)?;
    }
    Ok(())
}
