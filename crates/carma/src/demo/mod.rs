//! `carma demo`: two managers run the same jobs on emulated GPUs; one runs one job per GPU, the other shares GPUs.

mod screen;
mod summary;
mod timeline;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use carma_core::{JobId, MiB, Settings};
use carma_manager::submission::Caller;
use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Estimates, Estimator, Servers, Trace, Workload};

use crate::configuration::ConfigArguments;
use crate::replay::{EmulatedManager, Figures, Planned, Replayed, RunUpdate, STOPPED, Training, predict, stopped_by_signals};
use crate::submit::caller;
use screen::{RunView, Screen};

/// The workload whose job declares a third of the memory it needs.
const UNDER_DECLARED: &str = "xception_imagenet_bs128";
/// Interval of redraws.
const FRAME: Duration = Duration::from_millis(250);

/// The demo's options.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  carma demo --gpus 2 --policy magm")]
pub(crate) struct Arguments {
    #[command(flatten)]
    rules: ConfigArguments,
    /// GPUs of each manager (emulated A100-40GB).
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    gpus: u16,
    /// Speed of emulated time.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    speed: u32,
    /// Write the event log of the sharing run to this file. `carma replay-log` replays it.
    #[arg(long, value_name = "FILE")]
    event_log: Option<PathBuf>,
}

/// The jobs and the machine of the demo.
struct Scenario {
    catalogue: Catalogue,
    trace: Trace,
    servers: Servers,
    declared: Estimator,
    speed: f64,
}

impl Scenario {
    fn new(gpus: u16, speed: f64) -> Result<Self> {
        let catalogue = Catalogue::shipped();
        let trace = Trace::parse("morning.csv", include_str!("morning.csv").as_bytes(), &catalogue, &ReadLimits::default())?;
        // Users declare 5 % more than their jobs need, except for one job: it runs out of memory and recovers.
        let declared = |workload: &Workload| {
            let peak = workload.ranks.iter().map(|rank| rank.peak.0).max().unwrap_or_default();
            MiB(if workload.name == UNDER_DECLARED { peak / 3 } else { peak + peak / 20 })
        };
        let declared = Estimator::Declared(catalogue.iter().map(|(id, workload)| (id, declared(workload))).collect::<Estimates>());
        Ok(Self { trace, servers: format!("{gpus}xA100-40GB").parse()?, declared, speed, catalogue })
    }

    /// A job's workload. The managers are new, so job numbers follow the trace.
    fn workload(&self, job: JobId) -> &str {
        let workload = (job.0 as usize).checked_sub(1).and_then(|place| self.trace.jobs.get(place)?.workload);
        workload.map_or("", |workload| &self.catalogue.get(workload).name)
    }

    /// The simulator's prediction of a run by these rules.
    fn predict(&self, rules: &Settings) -> Result<Figures> {
        predict(&self.catalogue, &self.trace, &self.servers, rules, &self.declared)
    }

    fn plan(&self, caller: &Caller) -> Result<Vec<Planned>> {
        Training { catalogue: &self.catalogue, files: &[], estimator: &self.declared, seed: 0 }.plan(&self.trace, caller)
    }
}

/// Runs the jobs under both managers at the same time, shows the events, and compares the results.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let sharing = arguments.rules.settings()?;
    let exclusive = exclusive(&sharing);
    let scenario = Scenario::new(arguments.gpus, arguments.speed.into())?;
    let stopped = stopped_by_signals()?;
    let policy = policy(&sharing)?;
    let seconds = scenario.predict(&exclusive)?.makespan / scenario.speed;
    writeln!(
        output,
        "{jobs} training jobs for two CARMA managers, each with {gpus} emulated A100-40GB GPUs.\n\
         exclusive: one job per GPU. sharing: {policy}.\n\
         One job declares far less memory than it needs, to show how CARMA recovers it.\n\
         Emulated time runs {speed} times faster than real time: about {seconds:.0} s to go.\n",
        jobs = scenario.trace.jobs.len(),
        gpus = arguments.gpus,
        speed = arguments.speed,
    )?;
    output.flush()?;
    let record = arguments.event_log.as_ref().map(std::path::absolute).transpose()?;
    let managers = [
        EmulatedManager::start(&scenario.servers, scenario.speed, &exclusive, None)?,
        EmulatedManager::start(&scenario.servers, scenario.speed, &sharing, record.as_deref())?,
    ];
    let titles = ["exclusive: one job per GPU".to_owned(), format!("sharing: {policy}")];
    let shown = show(&scenario, &managers, titles, &stopped, output);
    // Both at the same time, so that an interrupted demo ends quickly.
    thread::scope(|scope| managers.into_iter().for_each(|manager| drop(scope.spawn(|| drop(manager)))));
    let [alone, shared] = shown?;
    summary::write(&Figures::from(&alone), &shared, &scenario.predict(&sharing)?, output)?;
    Ok(writeln!(output, "\nTimes and energy are emulated: one emulated minute took {:.1} s.", 60.0 / scenario.speed)?)
}

/// The same rules with one job per GPU.
fn exclusive(sharing: &Settings) -> Settings {
    Settings { policy: Some("exclusive".to_owned()), ..sharing.clone() }
}

/// The policy of the sharing run, for people.
fn policy(sharing: &Settings) -> Result<String> {
    let config = sharing.check()?;
    let preset = if *sharing == Settings::default() { "the default".to_owned() } else { format!("preset {}", config.preset.name()) };
    Ok(format!("policy {} ({preset})", config.mapping))
}

/// Shows both runs until they have ended.
fn show(
    scenario: &Scenario,
    managers: &[EmulatedManager; 2],
    titles: [String; 2],
    stopped: &AtomicBool,
    output: &mut impl Write,
) -> Result<[Replayed; 2]> {
    let (sender, updates) = channel();
    for (run, manager) in managers.iter().enumerate() {
        let planned = scenario.plan(&Caller { directory: manager.folder().to_owned(), ..caller()? })?;
        let updates = sender.clone();
        manager.replay(planned, scenario.speed, move |update| drop(updates.send((run, update))))?;
    }
    let [exclusive, sharing] = titles;
    let clients = [managers[0].client()?, managers[1].client()?];
    let mut screen = Screen::new([RunView::new("exclusive", exclusive), RunView::new("sharing", sharing)], clients, scenario, output);
    let replayed = follow(&updates, &mut screen, stopped)?;
    screen.clear()?;
    Ok(replayed)
}

fn follow(updates: &Receiver<(usize, RunUpdate)>, screen: &mut Screen<'_, impl Write>, stopped: &AtomicBool) -> Result<[Replayed; 2]> {
    let mut finished = [None, None];
    let mut next = Instant::now();
    loop {
        match updates.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok((run, RunUpdate::Job(change))) => screen.job_changed(run, &change)?,
            Ok((run, RunUpdate::Until(at))) => screen.complete_until(run, at)?,
            Ok((run, RunUpdate::Finished(replayed))) => {
                finished[run] = Some(replayed?);
                screen.ended(run)?;
            }
            Err(RecvTimeoutError::Timeout) => {
                screen.draw()?;
                next = Instant::now() + FRAME;
            }
            Err(RecvTimeoutError::Disconnected) => bail!("the runs ended without a result"),
        }
        if stopped.load(Ordering::Relaxed) {
            screen.clear()?;
            bail!(STOPPED);
        }
        finished = match finished {
            [Some(exclusive), Some(sharing)] => return Ok([exclusive, sharing]),
            not_yet => not_yet,
        };
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Config, Preset};
    use carma_sim::{GpuType, JobRecord, Physics, Run};

    use super::*;
    use crate::replay::simulated_runs;

    fn runs(scenario: &Scenario, rules: &Settings) -> Vec<Run> {
        simulated_runs(&scenario.catalogue, &scenario.trace, &scenario.servers, rules, &scenario.declared).unwrap()
    }

    /// The workloads of attempts that ran out of memory.
    fn out_of_memory<'a>(scenario: &'a Scenario, run: &Run) -> Vec<&'a str> {
        let attempts = |(job, record): (u64, &JobRecord)| vec![scenario.workload(JobId(job)); record.out_of_memory()];
        (1..).zip(&run.jobs).flat_map(attempts).collect()
    }

    #[test]
    fn under_the_default_policy_one_job_runs_out_of_memory_and_recovers_whatever_the_seed() {
        let scenario = Scenario::new(4, 60.0).unwrap();
        for (seed, run) in runs(&scenario, &Settings::default()).iter().enumerate() {
            assert_eq!(out_of_memory(&scenario, run), [UNDER_DECLARED], "seed {seed}");
            assert_eq!(run.summary().failed, 0, "seed {seed}");
        }
        for (seed, run) in runs(&scenario, &exclusive(&Settings::default())).iter().enumerate() {
            assert_eq!(out_of_memory(&scenario, run), [""; 0], "seed {seed}");
        }
    }

    /// For any policy and timing: the job does not fit beside one of the first four jobs, and its failed attempt shows enough of its need
    /// (the first part of its memory) that it is restarted only where all of it fits.
    #[test]
    fn the_job_runs_out_of_memory_once_because_of_the_sizes_of_the_jobs() {
        let scenario = Scenario::new(4, 60.0).unwrap();
        let peak = |workload: &str| scenario.catalogue.get(scenario.catalogue.find(workload).unwrap()).ranks[0].peak;
        let gpu = GpuType::find("A100-40GB").unwrap();
        let room = gpu.memory - gpu.reserved();
        let need = peak(UNDER_DECLARED);
        let physics = Physics::default();
        let (seen, least) = (physics.memory_request(need, 0).wanted, physics.memory_request(need, Physics::REQUESTS).without_cache);
        let light: MiB = (5..=7).map(|job| peak(scenario.workload(JobId(job)))).sum();
        for neighbour in (1..=4).map(|job| peak(scenario.workload(JobId(job)))) {
            assert!(neighbour + least > room, "runs out");
            assert!(neighbour + light + seen <= room, "gets the first part of its memory, wherever the light jobs are");
        }
        let admission = Config::from(Preset::Carma).admission;
        // The first rung of the ladder adds this much.
        let reserved = seen + MiB(2048);
        let beside = room - admission.guard_of(gpu.memory) - reserved - admission.margin;
        assert!(MiB((beside.0 as f64 / 1.05) as u64) + least <= room, "fits where it is restarted");
    }

    #[test]
    fn sharing_is_predicted_to_win_under_every_preset_and_the_job_to_recover() {
        let scenario = Scenario::new(4, 60.0).unwrap();
        for preset in Preset::ALL {
            let sharing = Settings { preset: Some(preset), ..Settings::default() };
            let [shared, alone] = [&sharing, &exclusive(&sharing)].map(|rules| scenario.predict(rules).unwrap());
            let name = preset.name();
            assert!(shared.makespan < 0.9 * alone.makespan && shared.mean_wait < 0.5 * alone.mean_wait, "{name}: {shared:?} {alone:?}");
            // The screen of `aegis` refuses busy GPUs, now and then even the one that this job would take.
            assert!(shared.oom_attempts >= 0.9 && shared.failed < 0.5, "{name}: {shared:?}");
        }
    }
}
