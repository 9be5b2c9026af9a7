//! What `scontrol show` prints: `Key=Value` pairs, a record on each line with `--oneliner`, and `Key = Value` lines of the configuration.

use std::collections::BTreeMap;

/// One thing that `scontrol` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record(BTreeMap<String, String>);

impl Record {
    /// Reads one line of `scontrol --oneliner show`. Values may hold blanks, as that of `OS` does: a word without a key belongs to the value before.
    pub(super) fn read(line: &str) -> Self {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in line.split_whitespace() {
            match (word.split_once('=').filter(|(key, _)| is_key(key)), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.to_owned(), value.to_owned())),
                (None, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
                (None, None) => {}
            }
        }
        Self(pairs.into_iter().collect())
    }

    /// Reads all lines of `scontrol show config`.
    pub(super) fn read_settings(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self(pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect())
    }

    /// A value; none for `(null)` and its like.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let value = self.0.get(key)?.as_str();
        (!["", "(null)", "N/A", "None"].contains(&value)).then_some(value)
    }

    /// A whole number.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }
}

fn is_key(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/:_-".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_blanks_and_absent_values_are_read() {
        let line = "NodeName=gn0 Arch=x86_64 Gres=gpu:a100:2,shard:a100:80 OS=Linux 6.1 #1 SMP @0  RealMemory=16000 Reason=(null) CfgTRES=cpu=16,mem=1 Nodes/A=1";
        let record = Record::read(line);
        assert_eq!(record.get("OS"), Some("Linux 6.1 #1 SMP @0"));
        assert_eq!((record.number("RealMemory"), record.get("Reason"), record.get("CfgTRES")), (Some(16_000), None, Some("cpu=16,mem=1")));
        let settings =
            Record::read_settings("Configuration data as of x\nJobRequeue              = 1\nAuthInfo = socket=/a,cred_expire=5\n");
        assert_eq!((settings.number("JobRequeue"), settings.get("AuthInfo")), (Some(1), Some("socket=/a,cred_expire=5")));
        assert_eq!(Record::read(""), Record::default());
    }
}
