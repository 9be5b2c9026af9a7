//! Telling, by a process of the user's own: what `carma deliver` does.

mod command;
mod desktop;
mod mail;
mod program;
mod webhook;

use std::io;

use jiff::Zoned;
use thiserror::Error;

use super::message::Message;
use crate::api::Channel;

/// What `carma deliver` prints when it has told.
pub const TOLD: &str = "told";

/// Why somebody was not told. No secret is in it.
#[derive(Debug, Error)]
pub enum DeliveryError {
    /// A program is not installed.
    #[error("there is no {0} here")]
    Missing(&'static str),
    /// A program cannot be run.
    #[error("cannot run {program}: {source}")]
    NotRun {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program did not do it.
    #[error("{program}: {status}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// Certificates are needed and cannot be had.
    #[error("cannot read certificates from {path}: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// Nobody answered.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It was not taken.
    #[error("answered {0}")]
    Refused(String),
}

/// Tells whoever is to be told, as whoever runs this.
pub fn deliver(message: &Message) -> Result<(), DeliveryError> {
    match &message.by {
        Channel::Webhook(url) => webhook::post(url, message),
        Channel::Mail(address) => mail::send(address, message, &Zoned::now()),
        Channel::Desktop => desktop::show(message),
        Channel::Command(command) => command::run(command, message),
    }
}
