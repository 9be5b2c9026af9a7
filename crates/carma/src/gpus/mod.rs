//! `carma gpus`: what each GPU is doing, whose processes are on it, and where the numbers come from.

mod find;
mod report;
mod table;

pub(crate) use find::{World, choose, find, real};

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use carma_gpu::profiling::{Options, Profiler, Source, SourceReport, Standing, Target};
use carma_gpu::{DeviceUuid, Driver, Gpu, Inventory, Monitor, mig};
use clap::Args;
use report::{DeviceReport, Divided, GpuReport, Part, PartReport, Report};

/// The first counters take two looks of whoever measures them.
const FIRST_COUNTERS: Duration = Duration::from_millis(2500);
/// How often to look for GPUs and instances that came or went.
const INVENTORY: Duration = Duration::from_secs(5);

/// What to show, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON: one object, with --watch one a line.
    #[arg(long)]
    json: bool,
    /// Go on showing, once every so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
    /// Do not wait for profiling counters.
    #[arg(long, conflicts_with = "watch")]
    quick: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let (driver, world) = find()?;
    let mut view = View::new(Arc::new(driver), world)?;
    view.waited = !arguments.quick;
    if view.waited {
        view.await_counters();
    }
    let mut checked = Instant::now();
    let clear = arguments.watch.is_some() && !arguments.json && std::io::stdout().is_terminal();
    loop {
        let began = Instant::now();
        let report = view.look();
        if clear {
            // Home, and nothing below.
            write!(output, "\x1b[H\x1b[J")?;
        }
        match (arguments.json, arguments.watch) {
            (true, Some(_)) => writeln!(output, "{}", serde_json::to_string(&report)?)?,
            (true, None) => writeln!(output, "{}", serde_json::to_string_pretty(&report)?)?,
            (false, _) => table::write(&report, output)?,
        }
        output.flush()?;
        let Some(seconds) = arguments.watch else { return Ok(()) };
        thread::sleep(Duration::from_secs(seconds).saturating_sub(began.elapsed()));
        if checked.elapsed() >= INVENTORY {
            view.renew()?;
            checked = Instant::now();
        }
    }
}

/// Everything that is looked at.
struct View {
    driver: Arc<Driver>,
    world: World,
    inventory: Inventory,
    gpus: Vec<Divided>,
    profiler: Profiler,
    monitor: Monitor,
    waited: bool,
}

impl View {
    fn new(driver: Arc<Driver>, world: World) -> Result<Self> {
        let (inventory, gpus) = Self::devices(&driver)?;
        let profiler = Profiler::start(Arc::clone(&driver), targets(&gpus), profiler_options(&world))?;
        Ok(Self { driver, world, inventory, gpus, profiler, monitor: Monitor::default(), waited: false })
    }

    /// GPUs or instances may have come or gone: then all is set up anew.
    fn renew(&mut self) -> Result<()> {
        // A driver that is silent for a moment changes nothing; what it does not answer is shown.
        if let Ok((inventory, gpus)) = Self::devices(&self.driver)
            && (inventory != self.inventory || gpus != self.gpus)
        {
            *self = Self { waited: self.waited, ..Self::new(Arc::clone(&self.driver), self.world.clone())? };
        }
        Ok(())
    }

    fn devices(driver: &Driver) -> Result<(Inventory, Vec<Divided>)> {
        let inventory = driver.inventory()?;
        let parts = |gpu: &Gpu| -> Result<Vec<Part>> {
            match gpu.mig {
                Some(true) => Ok(mig::list(driver, &gpu.uuid)?.instances.iter().flat_map(Part::of).collect()),
                _ => Ok(Vec::new()),
            }
        };
        let gpus = inventory.gpus.iter().map(|gpu| Ok(Divided { gpu: gpu.clone(), parts: parts(gpu)? })).collect::<Result<Vec<_>>>()?;
        Ok((inventory, gpus))
    }

    /// Waits until every GPU whose counters somebody measures has shown some.
    fn await_counters(&self) {
        let until = Instant::now() + FIRST_COUNTERS;
        let missing = |gpu: &Gpu| self.profiler.counters(&gpu.uuid).is_none();
        // A source that has begun will have some; NVML has them at the second look.
        let hopeful = |report: &SourceReport| match report.standing {
            Standing::Starting => true,
            Standing::Used(_) => report.source == Source::Gpm,
            Standing::Spare => report.source == Source::Dcgmi,
            Standing::Absent(_) => false,
        };
        let wait = || self.inventory.gpus.iter().any(missing) && self.profiler.report().iter().any(hopeful);
        while Instant::now() < until && wait() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn look(&mut self) -> Report {
        let all: Vec<DeviceUuid> = self.gpus.iter().flat_map(Divided::devices).cloned().collect();
        let (observations, _) = self.monitor.look(&self.driver, &all);
        let mut seen = observations.into_iter().map(|observation| {
            let counters = self.profiler.counters(&observation.device);
            DeviceReport::new(observation.reading, counters)
        });
        // Observations come in the order of the devices.
        let mut next = || seen.next().unwrap_or_else(|| DeviceReport::new(Err("it was not looked at"), None));
        let mut gpus = Vec::new();
        for Divided { gpu, parts } in &self.gpus {
            let state = next();
            let parts = parts.iter().map(|part| PartReport { part: part.clone(), state: next() }).collect();
            gpus.push(GpuReport { gpu: gpu.clone(), source: self.profiler.source(&gpu.uuid), state, parts });
        }
        Report {
            driver: self.inventory.driver.clone(),
            cuda: self.inventory.cuda.clone(),
            emulated: match &self.world {
                World::Real => None,
                World::Emulated(folder) => Some(folder.display().to_string()),
            },
            waited: self.waited,
            gpus,
            left_out: self.inventory.left_out.clone(),
        }
    }
}

/// All whose counters are wanted.
fn targets(gpus: &[Divided]) -> Vec<Target> {
    let of = |Divided { gpu, parts }: &Divided| {
        let parts = parts.iter().map(|part| Target::instance(part.uuid.clone(), gpu.uuid.clone(), part.gpu_instance));
        std::iter::once(Target::gpu(gpu.uuid.clone())).chain(parts).collect::<Vec<_>>()
    };
    gpus.iter().flat_map(of).collect()
}

/// The programs of the world that is looked at: an emulated machine has its own.
pub(crate) fn profiler_options(world: &World) -> Options {
    match world {
        World::Real => Options::default(),
        World::Emulated(folder) => Options { dcgmi: folder.join("bin/dcgmi"), ..Options::default() },
    }
}
