//! The findings about the configuration file. Pure.

use std::path::PathBuf;

use carma_format::count;
use carma_manager::api::ConfigurationDetail;
use carma_manager::configuration::{Configuration, ConfigurationError, Mistake, Source};

use super::contradictions::{HostSize, contradictions};
use super::findings::{Finding, Health, finding};

/// A configuration file, read as the manager reads it.
#[derive(Debug)]
pub(super) struct ConfigurationFile {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
    pub(super) read: Result<Configuration, ConfigurationError>,
    /// The configuration in force, if a manager runs.
    pub(super) in_force: Option<ConfigurationDetail>,
}

/// All findings about the file.
pub(super) fn findings(file: &ConfigurationFile, host: &HostSize) -> Vec<Finding> {
    let path = file.path.display();
    let configuration = match &file.read {
        Ok(configuration) => configuration,
        Err(ConfigurationError::Wrong { mistakes, .. }) => {
            let line = |mistake: &Mistake| finding(Health::Error, format!("{path}:{mistake}"), None);
            return mistakes.iter().map(line).collect();
        }
        Err(error @ ConfigurationError::Unreadable { .. }) => {
            return vec![finding(Health::Error, error.to_string(), Some("be the manager's user, or check the permissions of the file"))];
        }
    };
    let written = configuration.given.values().filter(|source| matches!(source, Source::Line(_))).count();
    let mut all = vec![if file.exists {
        finding(Health::Ok, format!("{path} is read: {} set, no unknown key", count(written, "key")), None)
    } else {
        finding(Health::Ok, format!("there is no {path}: all keys have their defaults"), None)
    }];
    let unknown =
        |warning: &Mistake| finding(Health::Warning, format!("{path}:{warning}"), Some("correct the name, then carma config reload"));
    all.extend(configuration.warnings.iter().map(unknown));
    if let Ok(rules) = configuration.rules.check() {
        all.extend(contradictions(&rules, &configuration.manager, host));
    }
    all.extend(file.in_force.as_ref().and_then(|in_force| about_reload(file, configuration, in_force)));
    all
}

/// Whether the manager knows what is in the file now.
fn about_reload(file: &ConfigurationFile, configuration: &Configuration, in_force: &ConfigurationDetail) -> Option<Finding> {
    let changed = if in_force.file == file.path { in_force.written != configuration.rules } else { return None };
    changed.then(|| {
        let says = format!("{} was changed after the manager read it", file.path.display());
        finding(Health::Warning, says, Some("carma config reload"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(text: &str, exists: bool) -> Vec<(Health, String)> {
        let path = PathBuf::from("/etc/carma/carma.toml");
        let read = Configuration::parse(text).map_err(|mistakes| ConfigurationError::Wrong { path: path.clone(), mistakes });
        let file = ConfigurationFile { path, exists, read, in_force: None };
        findings(&file, &HostSize::default()).into_iter().map(|finding| (finding.health, finding.says)).collect()
    }

    #[test]
    fn a_file_without_mistakes_says_how_many_keys_it_sets() {
        let [found] = about("[queue]\nbackfill = 10\nfair_share = true\n", true).try_into().unwrap();
        assert_eq!(found, (Health::Ok, "/etc/carma/carma.toml is read: 2 keys set, no unknown key".to_owned()));
        assert_eq!(about("", false), [(Health::Ok, "there is no /etc/carma/carma.toml: all keys have their defaults".to_owned())]);
    }

    #[test]
    fn each_mistake_has_its_line() {
        let [found] = about("[queue]\nfair_shair = true\n", true).try_into().unwrap();
        assert_eq!(found.0, Health::Error);
        assert_eq!(found.1, "/etc/carma/carma.toml:2: unknown key queue.fair_shair: did you mean queue.fair_share?");
    }

    #[test]
    fn contradictions_follow_a_file_that_can_be_read() {
        let all = about("[manager.logs]\nsize = 200\nsize_per_user = 100\n", true);
        assert_eq!(all.iter().map(|(health, _)| *health).collect::<Vec<_>>(), [Health::Ok, Health::Warning], "{all:?}");
    }
}
