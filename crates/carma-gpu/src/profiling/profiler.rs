//! The counters of all devices, each from the best source that has them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::choice::{Source, SourceReport, SourceState, choose};
use super::counters::{Counters, Target, Unit};
use super::dcgmi::Stream;
use super::exporter::Exporter;
use super::gpm::Gpm;
use super::latest::Status;
use super::problem::Problem;
use crate::driver::Driver;
use crate::identity::DeviceUuid;

/// Options of the counter sources.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `dcgmi` program; a bare name is looked up in `PATH`.
    pub dcgmi: PathBuf,
    /// The address of dcgm-exporter's page.
    pub exporter: String,
    /// The only source to use, instead of the best.
    pub forced: Option<Source>,
    /// Interval of streaming sources.
    pub interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dcgmi: PathBuf::from("dcgmi"),
            exporter: "http://localhost:9400/metrics".to_owned(),
            forced: None,
            interval: Duration::from_secs(1),
        }
    }
}

/// Reads the counters of devices. The devices are fixed at the start; start another one when they change.
#[derive(Debug)]
pub struct Profiler {
    units: HashMap<DeviceUuid, Unit>,
    forced: Option<Source>,
    gpm: Gpm,
    dcgmi: Option<Arc<Stream>>,
    exporter: Option<Exporter>,
}

impl Profiler {
    /// Starts to read the counters of these devices. GPM needs no other program.
    pub fn start(driver: Arc<Driver>, targets: Vec<Target>, options: Options) -> io::Result<Self> {
        let Options { dcgmi, exporter, forced, interval } = options;
        let units: HashMap<DeviceUuid, Unit> = targets.into_iter().map(|target| (target.uuid, target.unit)).collect();
        let wanted = |source| forced.is_none_or(|forced| forced == source);
        let gpm = if wanted(Source::Gpm) { Gpm::start(driver, units.values().cloned()) } else { Gpm::unused(driver) };
        let others: Vec<Unit> = units.values().filter(|unit| !gpm.covers(unit)).cloned().collect();
        let needed = |source| wanted(source) && !others.is_empty();
        let stream = needed(Source::Dcgmi).then(|| Stream::start(dcgmi, interval, others.clone())).transpose()?.map(Arc::new);
        // The page is fetched only for devices that no other source covers.
        let lacking = {
            let (stream, others) = (stream.as_ref().map(Arc::downgrade), others.clone());
            move || stream.as_ref().and_then(std::sync::Weak::upgrade).is_none_or(|stream| is_lacking(&stream, &others))
        };
        let exporter = needed(Source::Exporter).then(|| Exporter::start(exporter, interval, lacking)).transpose()?;
        Ok(Self { units, forced, gpm, dcgmi: stream, exporter })
    }

    /// The present counters of a device, if its source has fresh ones.
    pub fn counters(&self, uuid: &DeviceUuid) -> Option<Counters> {
        let unit = self.units.get(uuid)?;
        match self.source_of(unit) {
            Source::Gpm => self.gpm.counters(unit),
            source => self.latest(source, unit),
        }
    }

    /// The present source of a device's counters.
    pub fn source(&self, uuid: &DeviceUuid) -> Source {
        self.units.get(uuid).map_or(Source::UtilisationOnly, |unit| self.source_of(unit))
    }

    /// Every source with its state.
    pub fn report(&self) -> Vec<SourceReport> {
        let state = |source| {
            let users = self.units.values().filter(|unit| self.source_of(unit) == source).count();
            match source {
                _ if users > 0 => SourceState::Used(users),
                Source::Gpm => SourceState::Absent(self.gpm.problem().unwrap_or(Problem::NotAsked)),
                Source::Dcgmi => of_status(self.dcgmi.as_ref().map(|stream| stream.status())),
                Source::Exporter => of_status(self.exporter.as_ref().map(Exporter::status)),
                Source::UtilisationOnly => SourceState::Spare,
            }
        };
        Source::ALL.map(|source| SourceReport { source, state: state(source) }).into()
    }

    fn source_of(&self, unit: &Unit) -> Source {
        choose(self.forced, |source| match source {
            Source::Gpm => self.gpm.covers(unit),
            Source::UtilisationOnly => true,
            source => self.latest(source, unit).is_some(),
        })
    }

    /// The last counters of a source that streams.
    fn latest(&self, source: Source, unit: &Unit) -> Option<Counters> {
        match source {
            Source::Dcgmi => self.dcgmi.as_ref()?.counters(unit),
            Source::Exporter => self.exporter.as_ref()?.counters(unit),
            Source::Gpm | Source::UtilisationOnly => None,
        }
    }
}

fn is_lacking(stream: &Stream, units: &[Unit]) -> bool {
    stream.status() != Status::Starting && units.iter().any(|unit| stream.counters(unit).is_none())
}

fn of_status(status: Option<Status>) -> SourceState {
    match status {
        None => SourceState::Absent(Problem::NotAsked),
        Some(Status::Starting) => SourceState::Starting,
        Some(Status::Running) => SourceState::Spare,
        Some(Status::Failing(problem)) => SourceState::Absent(problem),
    }
}
