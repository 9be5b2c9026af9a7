//! The commands in `carma --help`, in groups, the most used first.

use std::fmt::Write;

use carma_format::wrapped_line;
use clap::Command;

/// All visible commands.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Jobs", &["submit", "queue", "show", "why", "logs", "wait", "cancel", "attach", "hold", "release", "requeue", "resubmit", "set"]),
    ("Queue and history", &["top", "web", "history", "report", "notify", "energy", "usage", "shares", "export", "what-if"]),
    (
        "GPUs and server",
        &["up", "down", "status", "gpus", "doctor", "drain", "resume", "mps", "mig", "servers", "pool", "agent", "metrics"],
    ),
    ("Estimation", &["estimate", "trace-memory", "sbatch", "estimator"]),
    (
        "Simulation",
        &[
            "demo",
            "compare",
            "simulate",
            "trace",
            "replay",
            "policies",
            "catalogue",
            "profile",
            "calibrate",
            "validate",
            "replay-log",
            "emu",
        ],
    ),
    ("Set-up", &["service", "config", "token", "backup", "restore", "completions", "man", "help"]),
];
const EXAMPLES: &str = "\
Examples:
  carma demo                                  a tour on emulated GPUs
  carma up --detach                           start the manager
  carma submit --mem 20GiB -- python train.py
  carma queue
  carma help submit                           the options of a command";
/// Columns for the names of commands, and for the whole text.
const NAMES: usize = 16;
const WIDTH: usize = 80;

/// The same command, with its subcommands in groups in its help.
pub(crate) fn grouped(command: Command) -> Command {
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}", list(&command));
    command.help_template(template).after_help(EXAMPLES)
}

fn list(command: &Command) -> String {
    let (heading, name_style) = (command.get_styles().get_header(), command.get_styles().get_literal());
    GROUPS.iter().fold(String::new(), |mut text, (group, names)| {
        let _ = writeln!(text, "{heading}{group}:{heading:#}");
        for name in *names {
            let _ = writeln!(text, "  {name_style}{name}{name_style:#}{}", beside(name, &about(command, name)));
        }
        text.push('\n');
        text
    })
}

fn about(command: &Command, name: &str) -> String {
    let found = command.find_subcommand(name);
    let about = found.and_then(Command::get_about).map_or_else(|| "Print the help of a command".to_owned(), ToString::to_string);
    let aliases: Vec<&str> = found.into_iter().flat_map(Command::get_visible_aliases).collect();
    if aliases.is_empty() { about } else { format!("{about} [alias: {}]", aliases.join(", ")) }
}

/// The description behind a name, wrapped below itself.
fn beside(name: &str, about: &str) -> String {
    let indent = " ".repeat(NAMES);
    let lines = wrapped_line(&format!("{indent}{about}"), WIDTH, &indent);
    lines.join("\n")[name.len() + 2..].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// Every visible command below this one, with the words that call it.
    fn commands(above: &str, command: &Command) -> Vec<(String, Command)> {
        let visible = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        visible
            .flat_map(|below| {
                let name = format!("{above} {}", below.get_name());
                [vec![(name.clone(), below.clone())], commands(&name, below)].concat()
            })
            .collect()
    }

    #[test]
    fn every_visible_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let cli = Cli::command();
        let visible = cli.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), visible.chain(["help"]).collect());
        assert_eq!(listed.len(), listed.iter().collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn the_command_list_fits_a_terminal() {
        let help = grouped(Cli::command()).render_help().to_string();
        assert_eq!(help.lines().find(|line| line.chars().count() > WIDTH), None);
        insta::assert_snapshot!(help);
    }

    #[test]
    fn every_command_has_examples_that_are_accepted() {
        let wrong: Vec<String> = commands("carma", &Cli::command())
            .iter()
            .filter(|(_, command)| !command.has_subcommands())
            .flat_map(|(name, command)| wrong_examples(name, &command.get_after_help().map(ToString::to_string).unwrap_or_default()))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn wrong_examples(name: &str, help: &str) -> Vec<String> {
        let Some((_, examples)) = help.split_once("Example") else { return vec![format!("{name} has no example")] };
        let lines = examples.replace("\\\n", " ");
        let calls: Vec<&str> = lines.lines().skip(1).flat_map(|line| line.split("&&")).filter(|call| call.contains("carma ")).collect();
        let own = calls.iter().any(|call| call.contains(name));
        let missing = (!own).then(|| format!("{name} has no example of its own: {calls:?}"));
        missing.into_iter().chain(calls.iter().filter_map(|call| refusal(call))).collect()
    }

    /// Why a call is not accepted: without `sudo`, `eval "$(...)"` and what a shell does with its output.
    fn refusal(call: &str) -> Option<String> {
        let call = call[call.find("carma ").unwrap_or_default()..].split(['|', '>', ')']).next().unwrap_or_default();
        let error = Cli::try_parse_from(shlex::split(call)?).err()?.to_string();
        // Users of examples do not exist here.
        (!error.contains("unknown user")).then(|| format!("{call}: {error}"))
    }
}
