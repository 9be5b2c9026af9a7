//! The manager's configuration file: the settings of decisions, and under `[manager]` those of the manager itself.

mod accounts;
mod address;
mod file;
mod sections;
mod source;

pub use accounts::AccountNames;
pub use file::Mistake;
pub use sections::*;
pub use source::{Source, Sources, sources};

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use carma_core::Settings;
use thiserror::Error;

/// All settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Configuration {
    /// The settings of decisions, as written.
    pub rules: Settings,
    /// The settings of the manager itself.
    pub manager: ManagerConfig,
    /// Where the keys that are given come from.
    pub given: Sources,
    /// Users and groups in the file that this host does not know. They may appear later, so they do not stop the manager.
    pub warnings: Vec<Mistake>,
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigurationError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has mistakes.
    #[error("{}", lines(path, mistakes).join("\n"))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All mistakes, by line.
        mistakes: Vec<Mistake>,
    },
}

/// Each mistake with its file and line: `carma.toml:3: ...`.
pub fn lines(path: &Path, mistakes: &[Mistake]) -> Vec<String> {
    mistakes.iter().map(|mistake| format!("{}:{mistake}", path.display())).collect()
}

impl Configuration {
    /// Reads the file; a file that does not exist sets nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let (configuration, mistakes) = Self::read_all(path)?;
        if mistakes.is_empty() { Ok(configuration) } else { Err(ConfigurationError::Wrong { path: path.to_owned(), mistakes }) }
    }

    /// Reads what can be read of the file, and its mistakes.
    pub(crate) fn read_all(path: &Path) -> Result<(Self, Vec<Mistake>), ConfigurationError> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(file::read(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Default::default()),
            Err(source) => Err(ConfigurationError::Unreadable { path: path.to_owned(), source }),
        }
    }

    /// Replaces the settings of decisions. Those of the manager itself stay in force until a restart.
    pub fn replace_rules(&mut self, rules: Settings, given: Sources) {
        self.rules = rules;
        self.given.retain(|key, _| source::is_managers(key));
        self.given.extend(given.into_iter().filter(|(key, _)| !source::is_managers(key)));
    }

    /// Reads the text of a file, or finds all mistakes in it.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let (configuration, mistakes) = file::read(text);
        if mistakes.is_empty() { Ok(configuration) } else { Err(mistakes) }
    }
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;

    use super::*;

    #[test]
    fn settings_of_decisions_and_of_the_manager_share_a_file() {
        let text = "policy = \"magm\"\n[queue]\nbackfill = 10\n[manager]\noperators = \"wheel\"\n[manager.limits]\ngpus_per_job = 4\n[manager.host]\nmemory = 2048\n";
        let read = Configuration::parse(text).unwrap();
        assert_eq!(read.rules.policy.as_deref(), Some("magm"));
        let manager = read.manager;
        assert_eq!((manager.operators.as_str(), manager.limits.gpus_per_job, manager.host.memory), ("wheel", Some(4), MiB(2048)));
        assert_eq!(Configuration::parse("").unwrap(), Configuration::default());
    }
}
