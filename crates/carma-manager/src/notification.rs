//! What users want to be told of, and how.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A notification: by this channel, when this happens to a job of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// When.
    pub on: Vec<Occasion>,
    /// How.
    pub by: Channel,
}

/// The event that triggers a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// A job has ended well.
    Done,
    /// A job has ended otherwise, and will not run again.
    Failed,
    /// A job ran out of memory, or lost its GPU, and was put back.
    Recovered,
    /// A job holds its GPUs and does not use them.
    Idle,
}

/// The channel of a notification. A process of the user sends it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A JSON document is sent to this address (POST).
    Webhook(String),
    /// A letter is sent by `sendmail` to this address.
    Mail(String),
    /// `notify-send` shows it on the user's desktop on this machine.
    Desktop,
    /// The shell runs this in the user's home, with what happened in its environment and, as JSON, on its standard input.
    Command(String),
}

/// Something worth telling, as it is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NotifiedEvent {
    /// What.
    pub occasion: Occasion,
    /// Which job.
    pub job: u64,
    /// What people call it.
    pub name: Option<String>,
    /// In a sentence.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at: crate::units::UnixMillis,
    /// Where its log is.
    #[schema(value_type = Option<String>)]
    pub log: Option<PathBuf>,
}

/// The result of a test message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChannelTest {
    /// The way.
    pub by: Channel,
    /// What went wrong; unset: nothing.
    pub problem: Option<String>,
}
