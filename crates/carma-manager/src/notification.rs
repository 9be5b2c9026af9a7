//! Notifications of users: events and channels.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::ArrayPlace;

/// A notification: these events of the user's jobs are sent over this channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// The events.
    pub on: Vec<Occasion>,
    /// The channel.
    pub by: Channel,
}

/// The event that triggers a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// A job succeeded.
    Done,
    /// A job failed, and will not run again.
    Failed,
    /// A job ran out of memory or lost its GPU, and is queued again.
    Recovered,
    /// A job holds its GPUs without using them.
    Idle,
    /// A job hangs, or is much slower than it was.
    Stalled,
}

/// The channel of a notification. A process of the user sends it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A JSON document is sent to this address (POST).
    Webhook(String),
    /// A mail is sent to this address with `sendmail`.
    Mail(String),
    /// `notify-send` shows it on the user's desktop on this machine.
    Desktop,
    /// The shell runs this in the user's home. The event is in its environment, and as JSON on its standard input.
    Command(String),
}

/// An event of a job, as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NotifiedEvent {
    /// The kind of event.
    pub occasion: Occasion,
    /// The number of the job.
    pub job: u64,
    /// The place of the job in an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayPlace>,
    /// The name of the job.
    pub name: Option<String>,
    /// The event as a sentence.
    pub text: String,
    /// Its time, in milliseconds since 1970.
    pub at: crate::units::UnixMillis,
    /// The last lines of its last attempt, if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The command that shows its log.
    pub log: Option<String>,
}

/// The result of a test message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChannelTest {
    /// The channel.
    pub by: Channel,
    /// The error; unset: it was sent.
    pub problem: Option<String>,
}
