//! Checking settings: every refusal names the key, the value and what would be right.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use super::Config;
use crate::mapping::{Mapping, POLICIES};
use crate::recovery::Rung;
use crate::risk::RiskWeights;
use crate::units::{Fraction, MiB, Seconds};

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{key} = {value} is not allowed: give {allowed}")]
pub struct ConfigError {
    /// The key, with its section.
    pub key: &'static str,
    /// What was given.
    pub value: String,
    /// What may be given.
    pub allowed: String,
}

/// All settings that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Checks values one by one and gathers what is wrong. A wrong value gives way to the one before, which is then not used.
#[derive(Default)]
pub(super) struct Checker {
    errors: Vec<ConfigError>,
}

/// More memory than any device has.
const MOST_MEMORY: f64 = 1_048_576.0;

impl Checker {
    pub(super) fn finish(self, config: Config) -> Result<Config, ConfigErrors> {
        if self.errors.is_empty() { Ok(config) } else { Err(ConfigErrors(self.errors)) }
    }

    pub(super) fn refuse(&mut self, key: &'static str, value: impl fmt::Display, allowed: impl Into<String>) {
        self.errors.push(ConfigError { key, value: value.to_string(), allowed: allowed.into() });
    }

    pub(super) fn number(&mut self, key: &'static str, given: Option<f64>, base: f64, least: f64, most: f64, unit: &str) -> f64 {
        let Some(value) = given else { return base };
        if (least..=most).contains(&value) {
            return value;
        }
        self.refuse(key, value, format!("{least} to {most}{unit}"));
        base
    }

    pub(super) fn memory(&mut self, key: &'static str, given: Option<f64>, base: MiB) -> MiB {
        self.memory_up_to(key, given, base, MOST_MEMORY)
    }

    pub(super) fn memory_up_to(&mut self, key: &'static str, given: Option<f64>, base: MiB, most: f64) -> MiB {
        let value = self.number(key, given, base.0 as f64, 0.0, most, " MiB");
        if value.fract() != 0.0 {
            self.refuse(key, value, "a whole number of MiB");
        }
        MiB(value as u64)
    }

    pub(super) fn seconds(&mut self, key: &'static str, given: Option<f64>, base: Seconds, least: f64, most: f64) -> Seconds {
        Seconds::new(self.number(key, given, base.get(), least, most, " s")).unwrap_or(base)
    }

    pub(super) fn fraction(&mut self, key: &'static str, given: Option<f64>, base: Fraction) -> Fraction {
        Fraction::clamped(self.number(key, given, base.get(), 0.0, 1.0, ""))
    }

    pub(super) fn count(&mut self, key: &'static str, given: Option<f64>, base: u32, least: u32, most: u32) -> u32 {
        let value = self.number(key, given, base.into(), least.into(), most.into(), "");
        if value.fract() != 0.0 {
            self.refuse(key, value, format!("a whole number from {least} to {most}"));
        }
        value as u32
    }

    pub(super) fn policy(&mut self, key: &'static str, name: &str, base: Mapping) -> Mapping {
        name.parse().unwrap_or_else(|_| {
            let names: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
            self.refuse(key, format!("{name:?}"), format!("one of {}, with est- or or- before it if wanted", names.join(", ")));
            base
        })
    }

    pub(super) fn weights(&mut self, key: &'static str, weights: RiskWeights) {
        let sum = weights.mean + weights.median + weights.p95 + weights.ema;
        if (sum - 1.0).abs() > 1e-6 {
            let given = format!("{} + {} + {} + {} (mean, median, p95, ema)", weights.mean, weights.median, weights.p95, weights.ema);
            self.refuse(key, given, format!("four weights from 0 to 1 that sum to 1, not to {sum}"));
        }
    }

    pub(super) fn ladder(&mut self, key: &'static str, ladder: &[Rung]) {
        for rung in ladder {
            match rung {
                Rung::Add(MiB(0)) => self.refuse(key, "add 0", "1 MiB or more to add"),
                Rung::Buckets { largest_step: MiB(0), .. } => self.refuse(key, "largest_step 0", "a step of 1 MiB or more"),
                Rung::Buckets { shares, .. } if shares.is_empty() || !shares.is_sorted() => {
                    self.refuse(
                        key,
                        format!("{:?}", shares.iter().map(|share| share.get()).collect::<Vec<_>>()),
                        "rising shares from 0 to 1",
                    );
                }
                _ => {}
            }
        }
    }
}
