//! The arguments of the `carma` command.

use std::env;
use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command_list::grouped;
use crate::configuration::ShowArguments;
use crate::manager::Manager;
use crate::{
    agent, backup, calibrate, catalogue, compare, configuration, demo, doctor, emu, estimate, estimator, event_log, gpus, manager, manual,
    mig, mps, notify, policies, pool, profile, replay, report, sbatch, service, simulate, submit, terminal, token, top, trace,
    trace_memory, up, user_task, validate, web, what_if,
};

/// Collocation-aware resource manager for servers with GPUs.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print plain text for screen readers: a fact per line, no colours, no drawing.
    #[arg(long, global = true, display_order = 1000)]
    plain: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo on emulated GPUs: one job per GPU against sharing.
    Demo(demo::Arguments),
    /// Simulate a trace under one policy.
    Simulate(simulate::Arguments),
    /// Compare policies side by side on one trace.
    Compare(compare::Arguments),
    /// Compare the simulator with measured runs.
    Validate(validate::Arguments),
    /// Fit the interference model of the simulator to measurements.
    Calibrate(calibrate::Arguments),
    /// Measure jobs alone and together on a GPU.
    Profile(profile::Arguments),
    /// Estimate the GPU memory and utilisation of a training job.
    Estimate(Box<estimate::Arguments>),
    /// Estimate the GPU memory of a training script by a dry run without a GPU.
    TraceMemory(Box<trace_memory::Arguments>),
    /// Evaluate, calibrate and train the estimators.
    #[command(subcommand)]
    Estimator(Box<estimator::Command>),
    /// List the mapping policies.
    #[command(after_help = "Example:\n  carma policies")]
    Policies,
    /// Show, check or reload the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Analyze, sample, map and generate traces.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List the known workloads, and add your own.
    #[command(subcommand)]
    Catalogue(catalogue::Command),
    /// Show the GPUs, their load and their processes.
    Gpus(gpus::Arguments),
    /// Check what this machine offers for GPU sharing, and how to fix what is missing.
    Doctor(doctor::Arguments),
    /// Show and create MIG instances.
    #[command(subcommand)]
    Mig(mig::Command),
    /// Start, stop and show MPS daemons.
    #[command(subcommand)]
    Mps(mps::Command),
    /// Emulate GPUs, training processes and faults.
    Emu(emu::Arguments),
    /// Start the manager.
    Up(up::Arguments),
    /// Run jobs on this server for a manager on another host.
    Agent(agent::Arguments),
    /// Request GPUs of a batch system for waiting jobs.
    #[command(subcommand)]
    Pool(pool::Command),
    /// Submit jobs.
    Submit(Box<submit::Arguments>),
    /// Submit a script to Slurm with the GPU shards and memory that it needs.
    Sbatch(Box<sbatch::Arguments>),
    /// Run a script inside a job of Slurm.
    #[command(hide = true)]
    SbatchRun(sbatch::RunArguments),
    /// Show GPUs, jobs and events in the terminal.
    Top(top::Arguments),
    #[command(flatten)]
    Manager(manager::Command),
    /// Show the web page in a browser on this machine.
    Web(web::Arguments),
    /// Create an access token for a user.
    Token(token::Arguments),
    /// Configure your notifications: webhook, mail, desktop or command.
    #[command(subcommand)]
    Notify(notify::Command),
    /// Back up the jobs and the history of the manager.
    Backup(backup::BackupArguments),
    /// Restore a backup.
    Restore(backup::RestoreArguments),
    /// Run the manager as a systemd service.
    #[command(subcommand)]
    Service(service::Command),
    /// Print shell completions.
    #[command(after_help = "Example:\n  source <(carma completions bash)")]
    Completions {
        /// The shell.
        shell: manual::Shell,
    },
    /// Print the manual page, or write the pages of all commands.
    Man(manual::ManArguments),
    /// Work in the folders of a user, with the user's rights.
    #[command(hide = true)]
    UserTask(user_task::Arguments),
    /// Deliver a notification to a user.
    #[command(hide = true)]
    Deliver(notify::DeliverArguments),
    /// Submit the jobs of a trace to the manager, and compare with the simulator.
    Replay(replay::Arguments),
    /// Write a report: GPU use, waiting times, energy, estimates.
    Report(report::Arguments),
    /// Simulate the recent jobs of the manager under other policies.
    WhatIf(what_if::Arguments),
    /// Replay an event log, and check that the decisions are the same.
    #[command(after_help = "Example:\n  carma replay-log run.jsonl")]
    ReplayLog {
        /// A log of `carma up --record`, or of --event-log of `carma simulate` and `carma demo`.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print all settings with their values and sources as TOML.
    #[command(after_help = "\
The values are those of the running manager. Without one, they are those that \
`carma up` would use. With --config, --preset or --policy, they are those of these \
options. Each value has its source: default, the preset or aim, FILE:LINE, or an \
option.\n\n\
Examples:\n  carma config show | grep margin\n  carma config show --config new.toml")]
    Show(ShowArguments),
    /// Check a configuration file.
    #[command(after_help = "\
It also checks the files of tokens, certificate and key that the file names.\n\n\
Examples:\n  carma config check\n  carma config check carma.toml")]
    Check {
        /// The file [default: the one that `carma up` reads].
        file: Option<PathBuf>,
    },
    /// Print the reference of all settings as Markdown tables.
    #[command(after_help = "Example:\n  carma config reference > settings.md")]
    Reference,
    /// Let the running manager read its configuration file again.
    #[command(after_help = "\
The manager checks the whole file first; if it has an error, nothing changes. \
Scheduling settings apply at once. Settings under [manager] need a restart; the \
command lists those that changed. Only operators can reload; SIGHUP does the same.\n\n\
Example:\n  carma config reload")]
    Reload(Manager),
}

impl Cli {
    /// Reads the command line; prints help and errors, and ends the process after them.
    pub(crate) fn read() -> Self {
        let colour = terminal::found(terminal::requested(env::args_os())).colour;
        let command = Self::command().color(if colour { ColorChoice::Auto } else { ColorChoice::Never });
        Self::from_arg_matches(&grouped(command).get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        terminal::found(self.plain).install();
        let output = &mut stdout().lock();
        match self.command {
            Command::Demo(arguments) => demo::run(&arguments, output),
            Command::Simulate(arguments) => simulate::run(&arguments, output),
            Command::Compare(arguments) => compare::run(&arguments, output),
            Command::Validate(arguments) => validate::run(&arguments, output),
            Command::Calibrate(arguments) => calibrate::run(&arguments, output),
            Command::Profile(arguments) => profile::run(&arguments, output),
            Command::Estimate(arguments) => estimate::run(&arguments, output),
            Command::TraceMemory(arguments) => trace_memory::run(&arguments, output),
            Command::Estimator(command) => estimator::run(&command, output),
            Command::Policies => policies::list(output),
            Command::Config(ConfigCommand::Show(arguments)) => configuration::show(&arguments, output),
            Command::Config(ConfigCommand::Check { file }) => configuration::check(file.as_deref(), output),
            Command::Config(ConfigCommand::Reference) => configuration::reference(output),
            Command::Config(ConfigCommand::Reload(manager)) => configuration::reload(&manager, output),
            Command::Trace(command) => trace::run(&command, output),
            Command::Catalogue(command) => catalogue::run(&command, output),
            Command::Gpus(arguments) => gpus::run(&arguments, output),
            Command::Doctor(arguments) => return doctor::run(&arguments, output),
            Command::Mig(command) => mig::run(&command, output),
            Command::Mps(command) => mps::run(&command, output),
            Command::Emu(arguments) => emu::run(&arguments, output),
            Command::Up(arguments) => up::run(&arguments),
            Command::Agent(arguments) => agent::run(&arguments),
            Command::Pool(command) => pool::run(&command, output),
            Command::Submit(arguments) => return submit::run(*arguments, output),
            Command::Sbatch(arguments) => return sbatch::run(*arguments, output),
            Command::SbatchRun(arguments) => return sbatch::run_attempt(&arguments),
            Command::Top(arguments) => return top::run(&arguments, output),
            Command::Manager(command) => return command.run(output),
            Command::Web(arguments) => web::run(&arguments, output),
            Command::Token(arguments) => token::run(&arguments, output),
            Command::Backup(arguments) => backup::backup(&arguments, output),
            Command::Restore(arguments) => backup::restore(&arguments, output),
            Command::Service(command) => service::run(&command, output),
            Command::Completions { shell } => manual::completions(shell, &Self::command(), output),
            Command::Man(arguments) => manual::man(&arguments, Self::command(), output),
            Command::Notify(command) => notify::run(&command, output),
            Command::Deliver(arguments) => notify::deliver(&arguments, output),
            Command::UserTask(arguments) => user_task::run(&arguments, output),
            Command::Replay(arguments) => replay::run(&arguments, output),
            Command::Report(arguments) => report::run(&arguments, output),
            Command::WhatIf(arguments) => what_if::run(&arguments, output),
            Command::ReplayLog { file } => event_log::replay(&file, output),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// The help texts of a command and of all commands below it, each on one line.
    fn helps(command: &mut Command) -> Vec<String> {
        let own = command.render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let below: Vec<String> = command.get_subcommands_mut().flat_map(helps).collect();
        std::iter::once(own).chain(below).collect()
    }

    fn find<'a>(command: &'a Command, word: &str) -> Option<&'a Command> {
        command.get_subcommands().find(|known| known.get_name() == word || known.get_all_aliases().any(|alias| alias == word))
    }

    #[test]
    fn help_texts_are_ascii() {
        let other = helps(&mut Cli::command()).into_iter().find(|text| !text.is_ascii());
        assert_eq!(other, None);
    }

    #[test]
    fn help_texts_name_commands_that_exist() {
        let mut root = Cli::command();
        root.build();
        let texts = helps(&mut root);
        let is_name = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') && !word.starts_with('-');
        let mut named = 0;
        for text in &texts {
            for (at, begin) in text.match_indices("carma ") {
                let mut words = text[at + begin.len()..].split([' ', '`', ',', '.', ')', ';', ':']).take_while(|word| is_name(word));
                let Some(word) = words.next().filter(|word| !word.is_empty()) else { continue };
                let command = find(&root, word).unwrap_or_else(|| panic!("unknown command `carma {word}`: {text}"));
                if let Some(next) = words.next().filter(|next| command.has_subcommands() && !next.is_empty()) {
                    assert!(find(command, next).is_some(), "unknown command `carma {word} {next}`: {text}");
                }
                named += 1;
            }
        }
        assert!(named > 100, "only {named} are given");
    }
}
