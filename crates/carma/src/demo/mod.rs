//! `carma demo`: the same jobs given to two managers at work, one of which shares GPUs. The GPUs are emulated.

mod screen;
mod stage;
mod summary;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use carma_core::{JobId, MiB, Preset, Settings};
use carma_manager::api::Told;
use carma_manager::submission::Caller;
use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Estimates, Estimator, Servers, Trace, Workload};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::configuration::ConfigArguments;
use crate::replay::{Figures, Planned, Replayed, Training, predict, replay};
use crate::submit::caller;
use screen::{Screen, Side};
use stage::Stage;

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(250);

/// What the demo is run with.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    rules: ConfigArguments,
    /// How many A100-40GB each manager has.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    gpus: u16,
    /// Emulated seconds a second.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    speed: u32,
    /// Write the event log of the sharing run to this file; `carma replay-log` replays it.
    #[arg(long, value_name = "FILE")]
    event_log: Option<PathBuf>,
}

/// What is shown.
struct Play {
    catalogue: Catalogue,
    trace: Trace,
    servers: Servers,
    declared: Estimator,
    speed: f64,
}

impl Play {
    fn new(gpus: u16, speed: f64) -> Result<Self> {
        let catalogue = Catalogue::shipped();
        let trace = Trace::parse("morning.csv", include_str!("morning.csv").as_bytes(), &catalogue, &ReadLimits::default())?;
        // Users know their jobs well, but for one: that one runs out of memory and comes back.
        let declared = |workload: &Workload| {
            let peak = workload.ranks.iter().map(|rank| rank.peak.0).max().unwrap_or_default();
            MiB(if workload.name.starts_with("llama3") { peak / 5 } else { peak + peak / 20 })
        };
        let declared = Estimator::Declared(catalogue.iter().map(|(id, workload)| (id, declared(workload))).collect::<Estimates>());
        Ok(Self { trace, servers: format!("{gpus}xA100-40GB").parse()?, declared, speed, catalogue })
    }

    /// What a job runs. The managers are new, so that jobs are numbered as the trace has them.
    fn workload(&self, job: JobId) -> &str {
        let workload = (job.0 as usize).checked_sub(1).and_then(|place| self.trace.jobs.get(place)?.workload);
        workload.map_or("", |workload| &self.catalogue.get(workload).name)
    }

    fn plan(&self, caller: &Caller) -> Result<Vec<Planned>> {
        Training { catalogue: &self.catalogue, files: &[], estimator: &self.declared, seed: 0 }.plan(&self.trace, caller)
    }
}

/// What one of the runs tells.
enum News {
    Told(Told),
    Over(Result<Replayed>),
}

/// Runs the jobs twice at the same time, and shows it.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut sharing = arguments.rules.settings()?;
    if sharing == Settings::default() {
        // By memory alone one job meets too many others and is seen to come back; our own rules are too careful for that.
        sharing.preset = Some(Preset::Standard);
    }
    let exclusive = Settings { policy: Some("exclusive".to_owned()), ..sharing.clone() };
    let play = Play::new(arguments.gpus, arguments.speed.into())?;
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped)).context("cannot handle signals")?;
    }
    let record = arguments.event_log.as_ref().map(std::path::absolute).transpose()?;
    let stages =
        [Stage::start(&play.servers, play.speed, &exclusive, None)?, Stage::start(&play.servers, play.speed, &sharing, record.as_deref())?];
    let config = sharing.check()?;
    let names = ["exclusive".to_owned(), format!("{} ({} preset)", config.mapping, config.preset.name())];
    writeln!(
        output,
        "{} jobs for two managers, each with {} A100-40GB of its own.\n\
         The GPUs are emulated, and their time runs {} times as fast as ours.\n",
        play.trace.jobs.len(),
        arguments.gpus,
        arguments.speed,
    )?;
    let shown = show(&play, &stages, names, &stopped, output);
    // At the same time: whoever stops the demo does not like to wait.
    thread::scope(|scope| stages.into_iter().for_each(|stage| drop(scope.spawn(|| drop(stage)))));
    let [alone, shared] = shown?;
    let predicted = predict(&play.catalogue, &play.trace, &play.servers, &sharing, &play.declared)?;
    summary::write(&Figures::from(&alone), &shared, &predicted, output)?;
    Ok(writeln!(output, "\nMeasured on emulated GPUs, in their time: each minute took {:.1} s here.", 60.0 / play.speed)?)
}

/// Lets both runs go on side by side until they are over.
fn show(play: &Play, stages: &[Stage; 2], names: [String; 2], stopped: &AtomicBool, output: &mut impl Write) -> Result<[Replayed; 2]> {
    let (sender, news) = channel();
    for (place, stage) in stages.iter().enumerate() {
        let planned = play.plan(&Caller { directory: stage.folder().to_owned(), ..caller()? })?;
        start(place, stage, planned, play.speed, sender.clone())?;
    }
    let [exclusive, sharing] = names;
    let clients = [stages[0].client()?, stages[1].client()?];
    let mut screen = Screen::new([Side::new("exclusive", exclusive), Side::new("sharing", sharing)], clients, play, output);
    let replayed = follow(&news, &mut screen, stopped)?;
    screen.clear()?;
    Ok(replayed)
}

/// One run, in a thread of its own.
fn start(place: usize, stage: &Stage, planned: Vec<Planned>, speed: f64, news: Sender<(usize, News)>) -> Result<()> {
    let mut client = stage.client()?;
    let run = move || {
        let replayed = replay(&mut client, &planned, speed, |_, told| drop(news.send((place, News::Told(told.clone())))));
        let _ = news.send((place, News::Over(replayed)));
    };
    thread::Builder::new().name("replay".to_owned()).spawn(run)?;
    Ok(())
}

fn follow(news: &Receiver<(usize, News)>, screen: &mut Screen<'_, impl Write>, stopped: &AtomicBool) -> Result<[Replayed; 2]> {
    let mut over = [None, None];
    let mut next = Instant::now();
    loop {
        match news.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok((place, News::Told(told))) => screen.tell(place, &told)?,
            Ok((place, News::Over(replayed))) => over[place] = Some(replayed?),
            Err(RecvTimeoutError::Timeout) => {
                screen.draw()?;
                next = Instant::now() + FRAME;
            }
            Err(RecvTimeoutError::Disconnected) => bail!("nobody tells how the jobs are"),
        }
        if stopped.load(Ordering::Relaxed) {
            screen.clear()?;
            bail!("stopped, with all that was started");
        }
        over = match over {
            [Some(exclusive), Some(sharing)] => return Ok([exclusive, sharing]),
            not_yet => not_yet,
        };
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// What is expected of the demo under these rules, and of one job a GPU.
    fn expected(sharing: &Settings) -> [Figures; 2] {
        let play = Play::new(4, 60.0).unwrap();
        let exclusive = Settings { policy: Some("exclusive".to_owned()), ..sharing.clone() };
        [sharing, &exclusive].map(|rules| predict(&play.catalogue, &play.trace, &play.servers, rules, &play.declared).unwrap())
    }

    #[test]
    fn sharing_is_expected_to_win_by_every_preset_and_one_job_to_come_back() {
        for preset in Preset::ALL {
            let [shared, alone] = expected(&Settings { preset: Some(preset), ..Settings::default() });
            let name = preset.name();
            assert!(shared.makespan < 0.9 * alone.makespan && shared.mean_wait < 0.5 * alone.mean_wait, "{name}: {shared:?} {alone:?}");
            let comes_back = preset == Preset::Carma || shared.oom_attempts >= 1.0;
            assert!(comes_back && shared.failed < 0.5, "{name}: {shared:?}");
        }
    }
}
