//! Samples of a GPU, by column of a chart.

use carma_core::Metric;
use carma_manager::store::MinuteMean;

use super::period::Period;

/// A mean in the making.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.weight += 1.0;
        }
    }

    pub(super) fn get(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Means over a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Column {
    /// SMACT, or the share of time with a running kernel where SMACT is not available.
    pub(super) busy: Mean,
    /// MiB in use.
    pub(super) memory: Mean,
    pub(super) watts: Mean,
}

/// Samples of a GPU.
#[derive(Debug, Clone, Default)]
pub(super) struct GpuSamples {
    pub(super) columns: Vec<Column>,
    /// Over the whole period.
    pub(super) all: Column,
    /// Minutes with samples.
    pub(super) minutes: u64,
    /// SMACT is available.
    pub(super) smact: bool,
}

impl GpuSamples {
    pub(super) fn of(minutes: &[MinuteMean], period: &Period) -> Self {
        let mut samples = Self { columns: vec![Column::default(); period.columns()], ..Self::default() };
        for minute in minutes {
            let place = (minute.minute.0 * 60_000).saturating_sub(period.since.0) / period.column();
            let Some(column) = samples.columns.get_mut(place as usize) else { continue };
            samples.minutes += 1;
            samples.smact |= minute.utilisation[Metric::Smact].is_some();
            let busy = minute.utilisation[Metric::Smact].or(minute.utilisation[Metric::Utilisation]).map(carma_core::Fraction::get);
            for means in [column, &mut samples.all] {
                means.busy.add(busy);
                means.memory.add(Some(minute.memory_used.0 as f64));
                means.watts.add(minute.power.map(|power| power.0));
            }
        }
        samples
    }

    /// Energy of the minutes with samples.
    pub(super) fn joules(&self) -> Option<f64> {
        self.all.watts.get().map(|watts| watts * self.minutes as f64 * 60.0)
    }
}
