//! Server-sent events.

use std::io::{self, BufRead, BufReader};

use super::error::ClientError;
use super::streams::Log;
use crate::api::Update;

/// A message from the manager.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its number, if it has one. Later events are requested with it.
    pub id: Option<String>,
    /// Its kind.
    pub name: Option<String>,
    /// Its content as JSON.
    pub data: String,
}

impl Event {
    /// The update in it, if any.
    pub fn update(&self) -> Option<Update> {
        serde_json::from_str(&self.data).ok()
    }
}

/// A stream of messages. It borrows the client.
#[derive(Debug)]
pub struct Events<'a>(io::Lines<BufReader<Log<'a>>>);

impl<'a> Events<'a> {
    pub(super) fn new(log: Log<'a>) -> Self {
        Self(BufReader::new(log).lines())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_event(&mut self.0).map_err(|error| ClientError::BrokenOff(error.to_string())).transpose()
    }
}

/// The next message. An incomplete last message is dropped.
fn next_event(lines: &mut impl Iterator<Item = io::Result<String>>) -> io::Result<Option<Event>> {
    let mut event = Event::default();
    let mut data: Vec<String> = Vec::new();
    for line in lines {
        let line = line?;
        if line.is_empty() && !data.is_empty() {
            return Ok(Some(Event { data: data.join("\n"), ..event }));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "data" => data.push(value),
            "event" => event.name = Some(value),
            "id" => event.id = Some(value),
            // Comments keep the connection alive; other fields are ignored.
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_distinguished_from_heartbeats_and_partial_data() {
        let text = ": alive\n\nid: 7\nevent: job\ndata: {\"a\":\ndata:1}\n\n:\n\ndata: last\n\ndata: cut";
        let mut lines = text.as_bytes().lines();
        let event = |id: Option<&str>, name: Option<&str>, data: &str| {
            Some(Event { id: id.map(Into::into), name: name.map(Into::into), data: data.into() })
        };
        let told: Vec<_> = (0..3).map(|_| next_event(&mut lines).unwrap()).collect();
        assert_eq!(told, [event(Some("7"), Some("job"), "{\"a\":\n1}"), event(None, None, "last"), None]);
    }
}
