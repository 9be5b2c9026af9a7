//! Sweeps: a policy under rising values of a setting.

use std::str::FromStr;

use anyhow::{Context, Result, bail};
use carma_core::Settings;
use toml::Value;

use crate::configuration::with_setting;

/// `smact=0.5:0.95:0.05`, or any number of the configuration by its full key, as in `admission.margin=0:4096:512`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sweep {
    pub(super) key: String,
    pub(super) values: Vec<f64>,
}

/// Limit of points in a sweep.
const MOST_POINTS: usize = 1000;

impl FromStr for Sweep {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self> {
        let form = "write a sweep as smact=0.5:0.95:0.05 (from, to, step)";
        let (key, range) = text.split_once('=').context(form)?;
        let numbers = range.split(':').map(str::parse).collect::<Result<Vec<f64>, _>>().context(form)?;
        let [from, to, step] = numbers[..] else { bail!(form) };
        if !(from.is_finite() && to >= from && step > 0.0 && (to - from) / step < MOST_POINTS as f64) {
            bail!("{text:?} has no points, or more than {MOST_POINTS}");
        }
        // Counted rather than added up, so that the last point is not missed by rounding.
        let points = ((to - from) / step + 1e-9).floor() as usize;
        let value = |point: usize| ((from + point as f64 * step) * 1e9).round() / 1e9;
        let key = if key.contains('.') { key.to_owned() } else { format!("screen.{key}") };
        Ok(Self { key, values: (0..=points).map(value).collect() })
    }
}

impl Sweep {
    /// The settings with this value in place.
    pub(super) fn apply(&self, settings: &Settings, value: f64) -> Result<Settings> {
        with_setting(settings, &self.key, if value.fract() == 0.0 { Value::Integer(value as i64) } else { Value::Float(value) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_its_last_point() {
        let sweep: Sweep = "smact=0.5:0.95:0.05".parse().unwrap();
        assert_eq!((sweep.key.as_str(), sweep.values.len(), sweep.values[9]), ("screen.smact", 10, 0.95));
        assert!("smact=1:0:0.1".parse::<Sweep>().is_err());
        assert!("smact=0:1:0".parse::<Sweep>().is_err());
        assert!("smact=0.5".parse::<Sweep>().is_err());
    }

    #[test]
    fn sweep_values_reach_the_settings() {
        let sweep: Sweep = "admission.margin=0:4096:512".parse().unwrap();
        let settings = sweep.apply(&Settings::default(), 1024.0).unwrap();
        assert_eq!(settings.check().unwrap().admission.margin.0, 1024);
        assert!(sweep.apply(&Settings::default(), -1.0).is_err());
        let unknown: Sweep = "admission.nothing=0:1:1".parse().unwrap();
        assert!(unknown.apply(&Settings::default(), 1.0).is_err());
    }
}
