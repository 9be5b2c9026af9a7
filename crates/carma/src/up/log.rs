//! The manager's log: lines of text or JSON on stderr.
//!
//! A custom subscriber: it needs no spans, filters or colours, and `tracing-subscriber` would triple the build cost of `tracing`.

use std::env;
use std::fmt::{Debug, Write as _};
use std::io::{Write, stderr};
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use carma_format::printable;
use carma_manager::last_errors::{self, LoggedError};
use carma_manager::store::UnixMillis;

/// The field of a line's text.
const MESSAGE: &str = "message";
/// The field of an event's kind, which begins its text.
const EVENT: &str = "event";

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Lowest level of log lines (or `CARMA_LOG`) [default: info].
    #[arg(long, value_name = "LEVEL", help_heading = "Log")]
    log_level: Option<LogLevel>,
    /// Log lines as text or as JSON objects (or `CARMA_LOG_FORMAT`) [default: text].
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    log_format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
    /// For systemd's journal, which has a time and a level of its own.
    #[value(skip)]
    Journal,
}

impl LogArguments {
    /// Logs from now on.
    pub(crate) fn start(&self) -> Result<()> {
        let level = self.log_level.map_or_else(|| variable("CARMA_LOG"), |level| Ok(Some(level)))?.unwrap_or(LogLevel::Info);
        let format = self.log_format.map_or_else(|| variable("CARMA_LOG_FORMAT"), |format| Ok(Some(format)))?;
        let default = || if is_journal() { LogFormat::Journal } else { LogFormat::Text };
        let log = Log { level: level.filter(), format: format.unwrap_or_else(default) };
        tracing::subscriber::set_global_default(log).context("cannot start the log")
    }
}

/// The value of an environment variable.
fn variable<T: ValueEnum>(name: &str) -> Result<Option<T>> {
    let Some(value) = env::var(name).ok().filter(|value| !value.is_empty()) else { return Ok(None) };
    T::from_str(&value, true).map(Some).map_err(|error| anyhow::anyhow!("{name}: {error}"))
}

/// Whether stderr is the journal of systemd, by `JOURNAL_STREAM`.
fn is_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").ok();
    let file = std::fs::metadata("/dev/stderr").map(|file| format!("{}:{}", file.dev(), file.ino()));
    stream.is_some_and(|stream| file.is_ok_and(|file| file == stream))
}

impl LogLevel {
    const fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        }
    }
}

/// Writes every event of the program that is important enough.
#[derive(Debug)]
struct Log {
    level: LevelFilter,
    format: LogFormat,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if *event.metadata().level() <= Level::WARN {
            let at = UnixMillis(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default());
            last_errors::keep(LoggedError { at, text: fields.message().to_owned() });
        }
        let line = fields.line(self.format, *event.metadata().level(), Timestamp::now());
        // One write, so that threads do not mix their lines. A full disk must not stop the manager.
        let _ = stderr().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event, in their order.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}").into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.push((field.name(), value.into()));
    }
}

impl Fields {
    fn message(&self) -> &str {
        self.0.iter().find(|(name, _)| *name == MESSAGE).and_then(|(_, message)| message.as_str()).unwrap_or_default()
    }

    fn line(self, format: LogFormat, level: Level, at: Timestamp) -> String {
        let time = at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
        let mut line = match format {
            LogFormat::Json => return self.json(&time.to_string(), level),
            LogFormat::Text => format!("{time} {level:<5} "),
            LogFormat::Journal => format!("<{}>", priority(level)),
        };
        let message = self.message();
        // Text from a job must not look like another line.
        line.push_str(&printable(&message.replace('\n', " ")));
        for (name, value) in self.0.iter().filter(|(name, _)| ![MESSAGE, EVENT].contains(name)) {
            let _ = match value {
                Value::String(text) if !text.contains([' ', '"', '=']) => write!(line, " {name}={}", printable(text)),
                value => write!(line, " {name}={value}"),
            };
        }
        line + "\n"
    }

    fn json(self, time: &str, level: Level) -> String {
        let level = level.as_str().to_lowercase();
        let head = [("time", Value::from(time)), ("level", level.into())];
        let all: Map<String, Value> = head.into_iter().chain(self.0).map(|(name, value)| (name.to_owned(), value)).collect();
        Value::Object(all).to_string() + "\n"
    }
}

/// The priority of syslog.
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat) -> String {
        let fields = [
            ("message", "ended: CUDA\nout of \u{1b}[31mmemory".into()),
            ("job", 3.into()),
            ("attempt", 2.into()),
            ("event", "ended".into()),
            ("gpu", "a b".into()),
        ];
        Fields(fields.into()).line(format, Level::INFO, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn lines_hold_time_level_message_and_fields() {
        assert_eq!(
            line(LogFormat::Text),
            "1970-01-01T00:00:00.000Z INFO  ended: CUDA out of \u{fffd}[31mmemory job=3 attempt=2 gpu=\"a b\"\n"
        );
        assert_eq!(line(LogFormat::Journal), "<6>ended: CUDA out of \u{fffd}[31mmemory job=3 attempt=2 gpu=\"a b\"\n");
        let json: Value = serde_json::from_str(&line(LogFormat::Json)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "ended: CUDA\nout of \u{1b}[31mmemory",
                "job": 3, "attempt": 2, "event": "ended", "gpu": "a b",
            })
        );
    }
}
