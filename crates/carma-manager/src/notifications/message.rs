//! A message over one channel, and its text.

use std::collections::BTreeMap;

use carma_core::JobId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{Channel, NotifiedEvent, Occasion};
use crate::rows::label;
use crate::store::UnixMillis;

/// The most events that a text lists; the rest is counted.
pub(super) const MAX_LISTED: usize = 20;
/// The longest line of a text, in characters.
const MAX_LINE: usize = 400;
/// The longest text, in characters. Chat services accept 2000.
const MAX_TEXT: usize = 1900;

/// A message to a user over one channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The channel.
    pub by: Channel,
    /// The name of the server.
    pub server: String,
    /// The events, in order. Very many are cut short.
    pub happened: Vec<NotifiedEvent>,
    /// How many events of each kind there are.
    pub counts: BTreeMap<Occasion, u64>,
}

impl Message {
    /// A test message.
    pub(super) fn sample(by: Channel, server: &str, at: UnixMillis) -> Self {
        let text = "this is a test: messages about your jobs look like this".to_owned();
        let happened = NotifiedEvent {
            occasion: Occasion::Done,
            job: 0,
            array: None,
            name: Some("test".to_owned()),
            text,
            at,
            last_lines: Vec::new(),
            log: None,
        };
        Self { by, server: server.to_owned(), counts: BTreeMap::from([(happened.occasion, 1)]), happened: vec![happened] }
    }

    /// The subject line.
    pub(super) fn subject(&self) -> String {
        match self.happened.as_slice() {
            [one] if self.total() == 1 => {
                let name = one.name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
                format!("{}{name}: {}", label(JobId(one.job), one.array), word(one.occasion))
            }
            _ => {
                let counted = self.counts.iter().map(|(occasion, count)| format!("{count} {}", word(*occasion)));
                format!("jobs: {}", counted.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The events, one per line.
    pub(super) fn body(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        let (mut letters, most) = (0, MAX_TEXT);
        for happened in self.happened.iter().take(MAX_LISTED) {
            let line = one_line(&happened.text, MAX_LINE);
            letters += line.chars().count() + 1;
            if letters > most && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        let listed = lines.len() as u64;
        if let [one] = self.happened.as_slice() {
            lines.extend(last_lines(one, most.saturating_sub(letters)));
        }
        let more = self.total().saturating_sub(listed);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }

    /// Subject and events in one text, for channels without a subject.
    pub(super) fn text(&self) -> String {
        if self.total() == 1 {
            format!("{}: {}", self.server, self.body())
        } else {
            format!("{}: {}\n{}", self.server, self.subject(), self.body())
        }
    }

    /// The document for webhooks and commands: Slack and Mattermost show `text`, Discord shows `content`.
    pub(super) fn document(&self) -> Value {
        json!({ "text": self.text(), "content": self.text(), "server": self.server, "happened": self.happened, "counts": self.counts })
    }

    fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// The last lines that a failed job printed, as far as there is room.
fn last_lines(happened: &NotifiedEvent, mut room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in happened.last_lines.iter().rev().map(|line| format!("  {}", carma_format::printable(line))) {
        room = room.saturating_sub(line.chars().count() + 1);
        if room == 0 {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines
}

/// The name of an occasion, as in JSON.
pub(super) const fn word(occasion: Occasion) -> &'static str {
    match occasion {
        Occasion::Done => "done",
        Occasion::Failed => "failed",
        Occasion::Recovered => "recovered",
        Occasion::Idle => "idle",
        Occasion::Stalled => "stalled",
    }
}

/// The beginning of a text as one line, without control characters.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= longest { line } else { line.chars().take(longest - 1).chain(['…']).collect() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn happened(occasion: Occasion, job: u64, text: &str) -> NotifiedEvent {
        NotifiedEvent {
            occasion,
            job,
            array: None,
            name: Some("näme".to_owned()),
            text: text.to_owned(),
            at: UnixMillis(1_800_000_000_000),
            last_lines: Vec::new(),
            log: None,
        }
    }

    pub(crate) fn message(by: Channel, happened: Vec<NotifiedEvent>) -> Message {
        let mut counts = BTreeMap::new();
        for happened in &happened {
            *counts.entry(happened.occasion).or_default() += 1;
        }
        Message { by, server: "gpu1".to_owned(), happened, counts }
    }

    #[test]
    fn one_event_is_a_sentence_and_many_are_counted() {
        let one = message(Channel::Desktop, vec![happened(Occasion::Failed, 7, "job 7 failed\r\nBcc: all")]);
        assert_eq!((one.subject().as_str(), one.text().as_str()), ("job 7 \"näme\": failed", "gpu1: job 7 failed  Bcc: all"));
        let mut many: Vec<_> = (1..=25).map(|job| happened(Occasion::Done, job, &format!("job {job} succeeded"))).collect();
        many[3].occasion = Occasion::Recovered;
        let many = message(Channel::Desktop, many);
        assert_eq!(many.subject(), "jobs: 24 done, 1 recovered");
        assert!(many.text().starts_with("gpu1: jobs: 24 done, 1 recovered\njob 1 succeeded\njob 2 "), "{}", many.text());
        assert!(many.body().ends_with("job 20 succeeded\nand 5 more"), "{}", many.body());
    }

    #[test]
    fn texts_have_a_maximum_length() {
        let long = message(Channel::Desktop, vec![happened(Occasion::Done, 1, &"x".repeat(5000)); 30]);
        assert!(long.text().chars().count() < 2000 && long.body().ends_with("and 26 more"), "{}", long.body());
    }
}
