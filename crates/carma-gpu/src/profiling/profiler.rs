//! The counters of all devices, each from the best source that has them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::choice::{Source, SourceReport, Standing, choose};
use super::counters::{Counters, Target, Unit};
use super::dcgmi::Stream;
use super::exporter::Exporter;
use super::gpm::Gpm;
use super::latest::Status;
use super::problem::Problem;
use crate::driver::Driver;
use crate::identity::DeviceUuid;

/// Where counters may come from.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `dcgmi` program; a bare name is looked up in `PATH`.
    pub dcgmi: PathBuf,
    /// The address of dcgm-exporter's page.
    pub exporter: String,
    /// The one source to use, instead of the best.
    pub wish: Option<Source>,
    /// How often counters are read where that happens unasked.
    pub interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dcgmi: PathBuf::from("dcgmi"),
            exporter: "http://localhost:9400/metrics".to_owned(),
            wish: None,
            interval: Duration::from_secs(1),
        }
    }
}

/// Gives the counters of devices. Which devices there are is settled at its start; where that changes, start another.
#[derive(Debug)]
pub struct Profiler {
    units: HashMap<DeviceUuid, Unit>,
    wish: Option<Source>,
    gpm: Gpm,
    dcgmi: Option<Arc<Stream>>,
    exporter: Option<Exporter>,
}

impl Profiler {
    /// Begins to read the counters of these devices. What NVML offers by itself needs nothing else to run.
    pub fn start(driver: Arc<Driver>, targets: Vec<Target>, options: Options) -> io::Result<Self> {
        let Options { dcgmi, exporter, wish, interval } = options;
        let units: HashMap<DeviceUuid, Unit> = targets.into_iter().map(|target| (target.uuid, target.unit)).collect();
        let wanted = |source| wish.is_none_or(|wish| wish == source);
        let gpm = if wanted(Source::Gpm) { Gpm::start(driver, units.values().cloned()) } else { Gpm::unused(driver) };
        let others: Vec<Unit> = units.values().filter(|unit| !gpm.covers(unit)).cloned().collect();
        let needed = |source| wanted(source) && !others.is_empty();
        let stream = needed(Source::Dcgmi).then(|| Stream::start(dcgmi, interval, others.clone())).transpose()?.map(Arc::new);
        // The page is fetched for devices that nobody else has.
        let lacking = {
            let (stream, others) = (stream.as_ref().map(Arc::downgrade), others.clone());
            move || stream.as_ref().and_then(std::sync::Weak::upgrade).is_none_or(|stream| is_lacking(&stream, &others))
        };
        let exporter = needed(Source::Exporter).then(|| Exporter::start(exporter, interval, lacking)).transpose()?;
        Ok(Self { units, wish, gpm, dcgmi: stream, exporter })
    }

    /// The counters of a device now, where its source has any that are not too old.
    pub fn counters(&self, uuid: &DeviceUuid) -> Option<Counters> {
        let unit = self.units.get(uuid)?;
        match self.source_of(unit) {
            Source::Gpm => self.gpm.counters(unit),
            source => self.latest(source, unit),
        }
    }

    /// Where a device's counters come from now.
    pub fn source(&self, uuid: &DeviceUuid) -> Source {
        self.units.get(uuid).map_or(Source::UtilisationOnly, |unit| self.source_of(unit))
    }

    /// Every source, and what becomes of it.
    pub fn report(&self) -> Vec<SourceReport> {
        let standing = |source| {
            let users = self.units.values().filter(|unit| self.source_of(unit) == source).count();
            match source {
                _ if users > 0 => Standing::Used(users),
                Source::Gpm => Standing::Absent(self.gpm.problem().unwrap_or(Problem::NotAsked)),
                Source::Dcgmi => of_status(self.dcgmi.as_ref().map(|stream| stream.status())),
                Source::Exporter => of_status(self.exporter.as_ref().map(Exporter::status)),
                Source::UtilisationOnly => Standing::Spare,
            }
        };
        Source::ALL.map(|source| SourceReport { source, standing: standing(source) }).into()
    }

    fn source_of(&self, unit: &Unit) -> Source {
        choose(self.wish, |source| match source {
            Source::Gpm => self.gpm.covers(unit),
            Source::UtilisationOnly => true,
            source => self.latest(source, unit).is_some(),
        })
    }

    /// What was read last by a source that is read unasked.
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

fn of_status(status: Option<Status>) -> Standing {
    match status {
        None => Standing::Absent(Problem::NotAsked),
        Some(Status::Starting) => Standing::Starting,
        Some(Status::Running) => Standing::Spare,
        Some(Status::Failing(problem)) => Standing::Absent(problem),
    }
}
