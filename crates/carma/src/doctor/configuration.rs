//! The findings about the configuration file. Pure.

use std::path::PathBuf;

use carma_format::count;
use carma_manager::api::ConfigurationDetail;
use carma_manager::configuration::{Configuration, ConfigurationError, Mistake, Source};
use carma_manager::differences;
use carma_manager::network_files::UnusableFile;

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
    /// Files that it names and that a manager could not use.
    pub(super) unusable: Vec<UnusableFile>,
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
    let unknown = |warning: &Mistake| {
        let own = configuration.given.iter().any(|(key, source)| key.starts_with("manager.") && *source == Source::Line(warning.line));
        let then = if own { "restart the manager" } else { "carma config reload" };
        finding(Health::Warning, format!("{path}:{warning}"), Some(&format!("correct the name, then {then}")))
    };
    all.extend(configuration.warnings.iter().map(unknown));
    all.extend(file.unusable.iter().map(about_file));
    if let Ok(rules) = configuration.rules.check() {
        all.extend(contradictions(&rules, &configuration.manager, host));
    }
    if let Some(in_force) = file.in_force.as_ref().filter(|in_force| in_force.file == file.path) {
        all.extend(about_reload(file, configuration, in_force));
        all.extend(about_restart(configuration, in_force));
    }
    all
}

/// A file with which the manager would not start.
fn about_file(UnusableFile { key, path, reason }: &UnusableFile) -> Finding {
    let says = format!("{key}: {} cannot be used: {reason}", path.display());
    finding(Health::Error, says, Some("correct it: until then the manager does not start again"))
}

/// Whether the manager knows what is in the file now.
fn about_reload(file: &ConfigurationFile, configuration: &Configuration, in_force: &ConfigurationDetail) -> Option<Finding> {
    (in_force.written != configuration.rules).then(|| {
        let says = format!("{} was changed after the manager read it", file.path.display());
        finding(Health::Warning, says, Some("carma config reload"))
    })
}

/// Keys of the manager itself that differ from those in force.
fn about_restart(configuration: &Configuration, in_force: &ConfigurationDetail) -> Option<Finding> {
    let mut keys = differences(&in_force.manager, &(&configuration.manager).into());
    // Only operators see the paths of tokens and keys.
    let hidden = in_force.manager.network.as_ref().is_none_or(|network| network.tokens.is_none());
    keys.retain(|key| !hidden || !["tokens", "certificate", "key"].iter().any(|name| *key == format!("manager.network.{name}")));
    (!keys.is_empty()).then(|| {
        let says = format!("changed keys wait for a restart of the manager: {}", keys.join(", "));
        finding(
            Health::Warning,
            says,
            Some("restart the manager: jobs continue (systemctl restart carma, or carma down and carma up --detach)"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(text: &str, exists: bool) -> Vec<(Health, String)> {
        let path = PathBuf::from("/etc/carma/carma.toml");
        let read = Configuration::parse(text).map_err(|mistakes| ConfigurationError::Wrong { path: path.clone(), mistakes });
        let file = ConfigurationFile { path, exists, read, in_force: None, unusable: Vec::new() };
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
    fn an_unknown_group_of_operators_needs_a_restart() {
        let path = PathBuf::from("/etc/carma/carma.toml");
        let read = Configuration::parse("[manager]\noperators = \"no-such-group\"\n[[quotas.users]]\nuid = 4294000000\n");
        let read = read.map_err(|mistakes| ConfigurationError::Wrong { path: path.clone(), mistakes });
        let unusable = vec![UnusableFile { key: "manager.network.key", path: path.clone(), reason: "it is gone".to_owned() }];
        let file = ConfigurationFile { path, exists: true, read, in_force: None, unusable };
        let all = findings(&file, &HostSize::default());
        let fixes: Vec<&str> = all.iter().filter_map(|finding| finding.fix.as_deref()).collect();
        assert_eq!(fixes[..2], ["correct the name, then restart the manager", "correct the name, then carma config reload"]);
        assert_eq!((all[3].health, all[3].says.ends_with("it is gone")), (Health::Error, true), "{all:?}");
    }

    #[test]
    fn contradictions_follow_a_file_that_can_be_read() {
        let all = about("[manager.logs]\nsize = 200\nsize_per_user = 100\n", true);
        assert_eq!(all.iter().map(|(health, _)| *health).collect::<Vec<_>>(), [Health::Ok, Health::Warning], "{all:?}");
    }
}
