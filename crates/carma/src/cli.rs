//! The arguments of the `carma` command.

use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::configuration::ShowArguments;
use crate::manager::Manager;
use crate::{
    agent, backup, calibrate, catalogue, compare, configuration, demo, doctor, emu, estimate, estimator, event_log, gpus, manager, manual,
    mig, mps, notify, policies, pool, profile, replay, report, sbatch, service, shim, simulate, submit, token, top, trace, trace_memory,
    up, user_task, validate, web, what_if,
};

/// Collocation-aware resource manager for servers with GPUs.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show two managers at work on emulated GPUs: one job a GPU against sharing.
    Demo(demo::Arguments),
    /// Simulate a trace under one policy.
    Simulate(simulate::Arguments),
    /// Compare policies side by side on one trace.
    Compare(compare::Arguments),
    /// Hold the simulator against measured runs.
    Validate(validate::Arguments),
    /// Fit the interference model to measurements, and say how well it does.
    Calibrate(calibrate::Arguments),
    /// Run jobs alone and beside each other on a GPU, for carma calibrate.
    Profile(profile::Arguments),
    /// Estimate the GPU memory and utilisation of a training job before it runs.
    Estimate(Box<estimate::Arguments>),
    /// Dry-run a training script without a GPU, and estimate its memory from what it allocates.
    TraceMemory(Box<trace_memory::Arguments>),
    /// Calibrate, train, evaluate and use the estimators.
    #[command(subcommand)]
    Estimator(Box<estimator::Command>),
    /// List the mapping policies.
    Policies,
    /// Show, check or reload the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Analyse, sample, map and make up traces.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List the workloads that are known, and add your own.
    #[command(subcommand)]
    Catalogue(catalogue::Command),
    /// Show what each GPU is doing, whose processes are on it, and where the numbers come from.
    Gpus(gpus::Arguments),
    /// Say what this machine has for sharing GPUs, what it lacks, and what would mend it.
    Doctor(doctor::Arguments),
    /// Cut GPUs into MIG instances, and show how they are cut.
    #[command(subcommand)]
    Mig(mig::Command),
    /// Start, stop and look at MPS, a daemon for each GPU.
    #[command(subcommand)]
    Mps(mps::Command),
    /// Emulate GPUs: a stand-in driver, training-like processes, faults.
    Emu(emu::Arguments),
    /// Start the manager: it takes jobs, runs them and brings them back.
    Up(up::Arguments),
    /// Run jobs on this server for a manager on another host.
    Agent(agent::Arguments),
    /// Request GPUs of a batch system for waiting jobs.
    #[command(subcommand)]
    Pool(pool::Command),
    /// Ask for a job, or many.
    Submit(Box<submit::Arguments>),
    /// Submit a script to Slurm with the shards and memory that it needs.
    Sbatch(Box<sbatch::Arguments>),
    /// Run a script inside a job of Slurm.
    #[command(hide = true)]
    SbatchRun(sbatch::RunArguments),
    /// Watch GPUs, jobs and events, and act on jobs by keys.
    Top(top::Arguments),
    #[command(flatten)]
    Manager(manager::Command),
    /// Open the web page for a browser on this machine.
    Web(web::Arguments),
    /// Make a token by which a user is known over the network.
    Token(token::Arguments),
    /// Say what you want to be told of, and how: webhook, mail, desktop, command.
    #[command(subcommand)]
    Notify(notify::Command),
    /// Copy the manager's jobs and history to a file, also while it runs.
    Backup(backup::BackupArguments),
    /// Put back a backup, while no manager runs.
    Restore(backup::RestoreArguments),
    /// Run the manager as a service of systemd.
    #[command(subcommand)]
    Service(service::Command),
    /// Print what makes a shell complete these commands.
    Completions {
        /// The shell.
        shell: manual::Shell,
    },
    /// Print the manual's first page, or write all pages.
    Man(manual::ManArguments),
    /// Run one attempt of a job under supervision.
    #[command(hide = true)]
    Shim(shim::Arguments),
    /// Do something in the folders of a user, as that user.
    #[command(hide = true)]
    UserTask(user_task::Arguments),
    /// Tell a user what became of their jobs.
    #[command(hide = true)]
    Deliver(notify::DeliverArguments),
    /// Submit a trace to the manager at its times, and report like compare.
    Replay(replay::Arguments),
    /// Write what happened on the GPUs as one page: use, waits, energy, estimates.
    Report(report::Arguments),
    /// Say what would have become of the manager's jobs by other rules.
    WhatIf(what_if::Arguments),
    /// Replay an event log and check that it leads to the same decisions.
    ReplayLog {
        /// A log written by `carma up --record`, or by `carma simulate` or `carma
        /// demo` with --event-log.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every key with the value in force and where it comes from, as TOML.
    #[command(after_help = "\
The values are those of the running manager. Without one, they are those that \
`carma up` would start with. With --config, --preset or --policy, they are those \
of these flags. Each value is followed by its source: default, the preset or aim, \
FILE:LINE, or a flag.\n\n\
Examples:\n  carma config show | grep margin\n  carma config show --config new.toml")]
    Show(ShowArguments),
    /// Say what is wrong with a configuration file.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Print the reference of all keys, as Markdown tables.
    Reference,
    /// Have the running manager read its configuration file again.
    #[command(after_help = "\
The manager checks the whole file first: a mistake changes nothing. Rules of \
decisions apply at once. Keys under [manager] need a restart; those that differ \
are named. For operators; the signal HUP does the same.")]
    Reload(Manager),
}

impl Cli {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
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
            Command::Config(ConfigCommand::Check { file }) => configuration::check(&file, output),
            Command::Config(ConfigCommand::Reference) => configuration::reference(output),
            Command::Config(ConfigCommand::Reload(manager)) => configuration::reload(&manager, output),
            Command::Trace(command) => trace::run(&command, output),
            Command::Catalogue(command) => catalogue::run(&command, output),
            Command::Gpus(arguments) => gpus::run(&arguments, output),
            Command::Doctor(arguments) => doctor::run(&arguments, output),
            Command::Mig(command) => mig::run(&command, output),
            Command::Mps(command) => mps::run(&command, output),
            Command::Emu(arguments) => emu::run(&arguments, output),
            Command::Up(arguments) => up::run(&arguments),
            Command::Agent(arguments) => agent::run(&arguments),
            Command::Pool(command) => pool::run(&command, output),
            Command::Submit(arguments) => return submit::run(*arguments, output),
            Command::Sbatch(arguments) => return sbatch::run(*arguments, output),
            Command::SbatchRun(arguments) => return sbatch::run_attempt(&arguments),
            Command::Top(arguments) => return top::run(&arguments),
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
            Command::Shim(arguments) => shim::run(&arguments.folder),
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
                let command = find(&root, word).unwrap_or_else(|| panic!("there is no `carma {word}`: {text}"));
                if let Some(next) = words.next().filter(|next| command.has_subcommands() && !next.is_empty()) {
                    assert!(find(command, next).is_some(), "there is no `carma {word} {next}`: {text}");
                }
                named += 1;
            }
        }
        assert!(named > 100, "only {named} are named");
    }
}
