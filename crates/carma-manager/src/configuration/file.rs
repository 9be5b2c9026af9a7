//! Reading a configuration file: every mistake at once, each with its line.

use std::fmt;
use std::ops::Range;

use carma_core::{Checker, KeyInfo, Kind, Setting, Settings};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{Configuration, ManagerConfig, ManagerSettings, Source, Sources, accounts};

/// The table of the manager's own keys.
const MANAGER: KeyInfo = KeyInfo { name: "manager", formerly: None, doc: "", kind: ManagerConfig::KIND, range: None };

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

/// Reads the text of a file as far as possible, and finds all mistakes in it.
pub(super) fn read(text: &str) -> (Configuration, Vec<Mistake>) {
    let mut reader = Reader { text, given: Sources::new(), mistakes: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.report(&error.span().unwrap_or_default(), error.message().to_owned());
    }
    let configuration = if errors.is_empty() { reader.read(table.get_ref()) } else { Configuration::default() };
    reader.mistakes.sort();
    reader.mistakes.dedup();
    (configuration, reader.mistakes)
}

struct Reader<'t> {
    text: &'t str,
    given: Sources,
    mistakes: Vec<Mistake>,
}

impl<'t> Reader<'t> {
    fn read(&mut self, table: &DeTable<'t>) -> Configuration {
        let (table, unknown_names) = accounts::with_numbers(table);
        let table = &table;
        let known: Vec<KeyInfo> = Settings::KEYS.iter().cloned().chain([MANAGER]).collect();
        let mut fitting = self.fitting_keys(table, &known, &mut Vec::new());
        let manager = fitting.remove("manager");
        let written: ManagerSettings = manager.and_then(|manager| parsed(manager).ok()).unwrap_or_default();
        let rules: Settings = parsed(table_of(fitting)).unwrap_or_default();
        let mut check = Checker::at(MANAGER.name);
        let base = ManagerConfig::default();
        let manager = ManagerConfig::read(&written, Some(&base), &MANAGER, &mut check).unwrap_or(base);
        for errors in [rules.check().err(), check.finish(()).err()].into_iter().flatten() {
            errors.0.iter().for_each(|error| self.report(&locate(&error.key, table), error.to_string()));
        }
        let unknown = accounts::unknown(&rules, &written);
        let unknown = unknown.into_iter().map(|(key, text)| (locate(&key, table), text));
        let mut warnings: Vec<Mistake> = unknown_names.into_iter().chain(unknown).map(|(span, text)| self.mistake(&span, text)).collect();
        warnings.sort();
        Configuration { rules, manager, given: std::mem::take(&mut self.given), warnings }
    }

    /// The keys that exist and whose values have the right type; others are reported.
    fn fitting_keys(&mut self, table: &DeTable<'t>, known: &[KeyInfo], path: &mut Vec<&'static str>) -> DeTable<'t> {
        let mut fitting = DeTable::new();
        for (key, value) in table {
            let Some(info) = known.iter().find(|info| info.is_named(key.get_ref())) else {
                self.report(&key.span(), unknown_key(key.get_ref(), known, path));
                continue;
            };
            if fitting.contains_key(info.name) {
                self.report(
                    &key.span(),
                    format!("{} is the former name of {}: give one of them", info.formerly.unwrap_or_default(), info.name),
                );
                continue;
            }
            path.push(info.name);
            let fits = match (info.kind, value.get_ref()) {
                (Kind::Section(keys), DeValue::Table(inner)) => Some(table_of(self.fitting_keys(inner, keys, path))),
                (Kind::Section(_), _) => {
                    self.refuse_value(value, info, path);
                    None
                }
                _ => {
                    self.given.insert(path.join("."), Source::Line(self.line(&key.span())));
                    self.fitting_value(value, info, path)
                }
            };
            path.pop();
            if let Some(value) = fits {
                fitting.insert(Spanned::new(key.span(), info.name.into()), value);
            }
        }
        fitting
    }

    /// A value, if a file with this key alone can be parsed.
    fn fitting_value(&mut self, value: &Spanned<DeValue<'t>>, info: &KeyInfo, path: &[&'static str]) -> Option<Spanned<DeValue<'t>>> {
        let wrapped = |inner: &[&'static str]| {
            inner.iter().rev().fold(value.clone(), |value, key| {
                let mut table = DeTable::new();
                table.insert(Spanned::new(0..0, (*key).into()), value);
                table_of(table)
            })
        };
        let error = match path {
            ["manager", inner @ ..] => parsed::<ManagerSettings>(wrapped(inner)).err(),
            _ => parsed::<Settings>(wrapped(path)).err(),
        };
        let Some(error) = error else { return Some(value.clone()) };
        if value.get_ref().is_array() && matches!(info.kind, Kind::Other(_)) {
            // A list of tables: its own message says which part is wrong.
            let span = error.span().filter(|span| !span.is_empty()).unwrap_or_else(|| value.span());
            self.report(&span, format!("{}: {}", path.join("."), error.message()));
        } else {
            self.refuse_value(value, info, path);
        }
        None
    }

    fn refuse_value(&mut self, value: &Spanned<DeValue<'t>>, info: &KeyInfo, path: &[&'static str]) {
        let written = self.text.get(value.span()).unwrap_or_default();
        self.report(&value.span(), format!("{} = {written} is not allowed: give {}", path.join("."), info.allowed()));
    }

    fn report(&mut self, span: &Range<usize>, text: String) {
        self.mistakes.push(self.mistake(span, text));
    }

    fn mistake(&self, span: &Range<usize>, text: String) -> Mistake {
        Mistake { line: self.line(span), text }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
    }
}

fn table_of(table: DeTable<'_>) -> Spanned<DeValue<'_>> {
    Spanned::new(0..0, DeValue::Table(table))
}

fn parsed<T: DeserializeOwned>(value: Spanned<DeValue<'_>>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(value))
}

/// Where a key stands, or the nearest section or list around it: `queue.shares[1].share`.
fn locate(key: &str, table: &DeTable<'_>) -> Range<usize> {
    let (mut found, mut table) = (0..0, table);
    for part in key.split('.') {
        let (name, index) = part.split_once('[').map_or((part, None), |(name, index)| (name, index.trim_end_matches(']').parse().ok()));
        let Some((key, value)) = table.get_key_value(name) else { break };
        found = key.span();
        let mut value = value;
        if let Some(item) = index.and_then(|index: usize| value.get_ref().get(index)) {
            (found, value) = (item.span(), item);
        }
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    found
}

fn unknown_key(key: &str, known: &[KeyInfo], path: &[&str]) -> String {
    let section = if path.is_empty() { String::new() } else { format!("{}.", path.join(".")) };
    let names = known.iter().map(|info| info.name);
    let nearest = names.clone().map(|name| (strsim::damerau_levenshtein(key, name), name)).min();
    let advice = match nearest {
        Some((distance, name)) if distance <= 2.max(key.len() / 3) => format!("did you mean {section}{name}?"),
        _ => format!("this section has the keys {}", names.collect::<Vec<_>>().join(", ")),
    };
    format!("unknown key {section}{key}: {advice}")
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;

    use super::*;

    fn read(text: &str) -> Result<Configuration, Vec<Mistake>> {
        Configuration::parse(text)
    }

    fn mistakes(text: &str) -> Vec<String> {
        read(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_mistake_is_reported_with_its_line() {
        let text = r#"polcy = "magm"
[admission]
margin = -1
jobs_per_gpu = "four"

[queue]
order = "fastest"
shares = [
    { uid = 0, share = 2 },
    { uid = 0, share = 0 },
]
[risk]
mean = 0.5
[manager.gpus]
perid = 2
[manager.network]
listen = "0.0.0.0:7070"
"#;
        insta::assert_snapshot!(mistakes(text).join("\n"));
    }

    #[test]
    fn syntax_tables_and_lists_are_checked() {
        let text = "queue = 1\nmanager = true\n[[quotas.users]]\nuid = 0\n[[quotas.users]]\nuid = 0\ngpus = 1.5\n[recovery]\nladder = [{ ad = 3 }]\n";
        insta::assert_snapshot!(mistakes(text).join("\n"));
        insta::assert_snapshot!(mistakes("policy = \n[queue\n").join("\n"));
    }

    #[test]
    fn a_default_that_no_longer_fits_is_reported_at_its_section() {
        assert_eq!(
            mistakes("\n[window]\nperiod = 45\nstale_after = 50\n"),
            ["2: window.length = 30 is not allowed: give a number from 45 to 3600 s (window.period or more)"]
        );
    }

    #[test]
    fn former_names_of_keys_are_read() {
        let text = "[slots]\nlength = 60\n[gate]\npatience = 7\n[queue]\ncourtesy = 9\n[idle_holders]\nbelow = 0.5\n";
        let read = read(text).unwrap();
        let config = read.rules.check().unwrap();
        assert_eq!(config.time_slices.length, Some(Seconds::from_secs(60)));
        assert_eq!(config.gate.timeout, Some(Seconds::from_secs(7)));
        assert_eq!((config.queue.fair_share_reserve, config.idle_jobs.below.get()), (Seconds::from_secs(9), 0.5));
        assert_eq!(read.given["gate.timeout"], Source::Line(4));
        let twice = mistakes("[gate]\npatience = 7\ntimeout = 8\n");
        assert_eq!(twice, ["3: patience is the former name of timeout: give one of them"]);
    }

    #[test]
    fn names_of_users_and_groups_become_numbers() {
        let text = "[[quotas.users]]\nuser = \"root\"\ngpus = 2\n[queue]\nfair_share = true\nshares = [\n    { user = \"root\", share = 2 },\n    { group = \"root\", share = 3 },\n    { gid = \"0\", share = 3 },\n]\n";
        let read = read(text).unwrap();
        let uid: Vec<u32> = read.rules.quotas.unwrap().users.unwrap().iter().map(|own| own.uid).collect();
        let shares: Vec<_> = read.rules.queue.unwrap().shares.unwrap().iter().map(|share| (share.uid, share.gid)).collect();
        assert_eq!((uid, shares, read.warnings), (vec![0], vec![(Some(0), None), (None, Some(0)), (None, Some(0))], Vec::new()));
    }

    #[test]
    fn an_unknown_name_is_a_warning_and_mistakes_behind_it_keep_their_lines() {
        let list = |last: &str| {
            format!("[queue]\nshares = [\n    {{ user = \"no such user\", share = 2 }},\n    {{ group = \"root\", share = {last} }},\n]\n")
        };
        let good = read(&list("3")).unwrap();
        let warnings: Vec<String> = good.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, ["3: queue.shares[0].user: this host has no user \"no such user\": the entry has no effect"]);
        assert_eq!(good.rules.queue.unwrap().shares.unwrap().len(), 1);
        assert!(mistakes(&list("0"))[0].starts_with("4: "), "{:?}", mistakes(&list("0")));
        assert!(mistakes("[[quotas.users]]\nuser = \"root\"\nuid = 0\n")[0].contains("user"));
    }

    #[test]
    fn unknown_users_and_groups_are_warnings() {
        let text = "[manager]\noperators = \"no-such-group\"\n[[quotas.users]]\nuid = 4294000000\n";
        let warnings: Vec<String> = read(text).unwrap().warnings.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(warnings.join("\n"));
    }
}
