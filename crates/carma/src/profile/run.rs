//! Running jobs together on one GPU, and measuring them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use carma_core::{AttemptId, DeviceId, JobId, Metric, Seconds, ServerId, Time};
use carma_emu::Machine;
use carma_gpu::mps::{ClientLimits, Health, MpsControl};
use carma_gpu::profiling::{Options, Profiler, Target};
use carma_gpu::{Driver, Gpu, Monitor, Reading};
use carma_manager::measure::{Measurement, Meter, UsageSample};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::jobs::Job;
use super::plan::{Kind, Mode, Run};
use super::results::{Measured, Outcome};
use crate::gpus::{World, profiler_options};
use crate::mps::MpsFolder;

/// Time between samples of the GPU.
const PERIOD: Duration = Duration::from_millis(100);
/// Between the starts of copies, in seconds of the GPU: as `carma calibrate` assumes, each has started up and was sampled before the next one.
const BETWEEN_COPIES: f64 = 38.2;
/// Timeout for the GPU to become empty.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Sampling covers one GPU and one job.
const GPU: DeviceId = DeviceId::gpu(ServerId(0), 0);
const ALONE: AttemptId = AttemptId { job: JobId(1), number: 1 };

/// A GPU without other processes.
pub(super) struct Bench {
    driver: Arc<Driver>,
    world: World,
    gpu: Gpu,
    speed: f64,
    environment: Vec<(&'static str, OsString)>,
    profiler: Profiler,
    monitor: Monitor,
    /// Set by a stop signal.
    stop: Arc<AtomicBool>,
}

/// Jobs that are not reaped yet, so that their process ids stay theirs. Dropped, they are killed.
struct RunningJobs(Vec<Option<Child>>);

impl Drop for RunningJobs {
    fn drop(&mut self) {
        for child in self.0.iter_mut().flatten() {
            // Each leads its own process group.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

/// Which job ended, and when.
type Ended = (usize, Instant);

impl Bench {
    pub(super) fn new(driver: Driver, world: World, gpu: Gpu) -> Result<Self> {
        let driver = Arc::new(driver);
        let (speed, environment) = match &world {
            World::Real => (1.0, Vec::new()),
            World::Emulated(folder) => {
                let machine = Machine::open(folder)?;
                (machine.clock()?.1, machine.environment())
            }
        };
        let options = Options { interval: PERIOD, ..profiler_options(&world) };
        let profiler = Profiler::start(Arc::clone(&driver), vec![Target::gpu(gpu.uuid.clone())], options)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
        }
        Ok(Self { driver, world, gpu, speed, environment, profiler, monitor: Monitor::default(), stop })
    }

    /// Time factor of the GPU.
    pub(super) const fn speed(&self) -> f64 {
        self.speed
    }

    /// Runs jobs together until all have ended.
    pub(super) fn run(&mut self, run: &Run, jobs: &BTreeMap<String, Job>) -> Result<Outcome> {
        self.wait_until_empty()?;
        let control = (run.mode == Mode::Mps).then(|| MpsFolder::new(&self.world, &self.gpu.uuid).control());
        let started = control.as_ref().map(start_mps).transpose()?.unwrap_or(false);
        let outcome = self.run_all(run, jobs, control.as_ref());
        if let Some(control) = control.filter(|_| started) {
            control.stop(Duration::ZERO)?;
        }
        outcome
    }

    fn run_all(&mut self, run: &Run, jobs: &BTreeMap<String, Job>, control: Option<&MpsControl>) -> Result<Outcome> {
        let (ends, ended) = channel();
        let mut running = RunningJobs(Vec::new());
        let between = if run.kind == Kind::Copies { Duration::from_secs_f64(BETWEEN_COPIES / self.speed) } else { Duration::ZERO };
        let mut meter = Meter::default();
        let began = Instant::now();
        let mut begins: Vec<Instant> = Vec::new();
        let mut all: Vec<Option<(Instant, ExitStatus)>> = vec![None; run.jobs.len()];
        while all.iter().any(Option::is_none) {
            if let Some(name) = run.jobs.get(begins.len()).filter(|_| began.elapsed() >= between * begins.len() as u32) {
                let job = jobs.get(name).with_context(|| format!("{name} is no longer listed"))?;
                let child = self.start(job, control).with_context(|| format!("cannot run {name}"))?;
                let pid = Pid::from_child(&child);
                running.0.push(Some(child));
                wait_for(begins.len(), pid, ends.clone())?;
                begins.push(Instant::now());
                continue;
            }
            let due = if begins.len() < run.jobs.len() { between * begins.len() as u32 } else { Duration::MAX };
            let next = due.saturating_sub(began.elapsed()).min(PERIOD);
            if let Ok((place, at)) = ended.recv_timeout(next)
                && let Some(mut child) = running.0[place].take()
            {
                all[place] = Some((at, child.wait()?));
            }
            if self.stop.load(Ordering::Relaxed) {
                bail!("interrupted: --resume continues");
            }
            self.sample(&mut meter, began);
        }
        let ends: Vec<(Instant, ExitStatus)> = all.into_iter().flatten().collect();
        if let Some((name, (_, status))) = run.jobs.iter().zip(&ends).find(|(_, (_, status))| !status.success()) {
            return Ok(Outcome::Failed { reason: format!("{name} failed: {status}") });
        }
        let seconds = |from: Instant, to: Instant| (to - from).as_secs_f64() * self.speed;
        let last = ends.iter().map(|(at, _)| *at).max().unwrap_or(began);
        Ok(Outcome::Took {
            seconds: begins.iter().zip(&ends).map(|(begin, (end, _))| seconds(*begin, *end)).collect(),
            all: seconds(began, last),
            measured: (run.kind == Kind::SoloRun).then(|| measured(&meter.finish(ALONE))),
        })
    }

    fn start(&self, job: &Job, control: Option<&MpsControl>) -> io::Result<Child> {
        let [program, arguments @ ..] = job.command.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&job.directory).envs(self.environment.iter().cloned());
        command.env("CUDA_VISIBLE_DEVICES", self.gpu.uuid.as_str());
        command.envs(control.into_iter().flat_map(|control| ClientLimits::default().environment(control)));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()
    }

    fn reading(&mut self) -> Result<Reading> {
        let (observations, _) = self.monitor.sample(&self.driver, std::slice::from_ref(&self.gpu.uuid));
        let observation = observations.into_iter().next().context("the GPU does not answer")?;
        Ok(observation.reading?)
    }

    /// Samples count for a job that runs alone; for shared runs, only times count. A failed sample is repeated.
    fn sample(&mut self, meter: &mut Meter, began: Instant) {
        let Ok(reading) = self.reading() else { return };
        let at = Time::ZERO + Seconds::new(began.elapsed().as_secs_f64() * self.speed).unwrap_or_default();
        let counters = self.profiler.counters(&self.gpu.uuid);
        meter.add(GPU, &UsageSample::new(at, &reading, counters.as_ref(), |_| Some(ALONE), |_| None));
    }

    fn wait_until_empty(&mut self) -> Result<()> {
        let until = Instant::now() + TIMEOUT;
        while let [process, ..] = self.reading()?.processes.as_slice() {
            if Instant::now() >= until {
                bail!("process {} uses the GPU, which must be empty: `carma gpus` shows its user", process.pid);
            }
            thread::sleep(PERIOD);
        }
        Ok(())
    }
}

/// Starts the daemon, unless one is running; returns whether it did.
fn start_mps(control: &MpsControl) -> Result<bool> {
    let missing = control.health()? == Health::NotRunning;
    if missing {
        control.start(ClientLimits::default())?;
    }
    Ok(missing)
}

/// Reports the exact end of a process.
fn wait_for(place: usize, pid: Pid, ends: Sender<Ended>) -> io::Result<()> {
    let wait = move || {
        while matches!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(Errno::INTR)) {}
        // The receiver may be gone.
        let _ = ends.send((place, Instant::now()));
    };
    thread::Builder::new().spawn(wait).map(drop)
}

fn measured(measurement: &Measurement) -> Measured {
    let usage = measurement.gpus.get(&GPU).cloned().unwrap_or_default();
    let share = usage.means().map(|share| share.map(carma_core::Fraction::get));
    Measured {
        peak_mib: usage.peak_memory.0,
        gpu_util_pct: share[Metric::Utilisation].map(|share| share * 100.0),
        smact: share[Metric::Smact],
        smocc: share[Metric::Smocc],
        drama: share[Metric::Drama],
        power_w: usage.power().map(|power| power.0),
    }
}
