//! Collects the mistakes of a configuration, each with its key, its value and what is allowed.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

/// A setting that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{key} = {value} is not allowed: give {allowed}")]
pub struct ConfigError {
    /// The key with its sections: `admission.margin`.
    pub key: String,
    /// The value given.
    pub value: String,
    /// What is allowed instead.
    pub allowed: String,
}

/// All settings that are not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Collects mistakes while sections are read. A wrong value leaves the one before it in place, so that the rest is still checked.
#[derive(Debug, Default)]
pub struct Checker {
    path: Vec<&'static str>,
    errors: Vec<ConfigError>,
}

impl Checker {
    /// A checker for keys below this section.
    pub fn at(section: &'static str) -> Self {
        Self { path: vec![section], errors: Vec::new() }
    }

    /// Reads the value of a key: mistakes carry its name.
    pub fn inside<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key);
        let value = read(self);
        self.path.pop();
        value
    }

    /// Reports the key that is being read.
    pub fn refuse(&mut self, value: impl fmt::Display, allowed: impl Into<String>) {
        self.errors.push(ConfigError { key: self.path.join("."), value: value.to_string(), allowed: allowed.into() });
    }

    /// Reports a key of the section that is being read.
    pub fn refuse_key(&mut self, key: &str, value: impl fmt::Display, allowed: impl Into<String>) {
        let path = self.path.iter().copied().chain([key]).collect::<Vec<_>>().join(".");
        self.errors.push(ConfigError { key: path, value: value.to_string(), allowed: allowed.into() });
    }

    /// Reports a key of an item of the list that is being read.
    pub fn refuse_item(&mut self, index: usize, key: &str, value: impl fmt::Display, allowed: impl Into<String>) {
        let list = self.path.join(".");
        self.errors.push(ConfigError { key: format!("{list}[{index}].{key}"), value: value.to_string(), allowed: allowed.into() });
    }

    /// The value, or all mistakes that were found on the way to it.
    pub fn finish<T>(self, value: T) -> Result<T, ConfigErrors> {
        if self.errors.is_empty() { Ok(value) } else { Err(ConfigErrors(self.errors)) }
    }
}
