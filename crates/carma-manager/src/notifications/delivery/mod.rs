//! Delivery of a message by a process of the user: `carma deliver`.

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

/// What `carma deliver` prints on success.
pub const DELIVERED: &str = "told";

/// Why a message was not delivered. It holds no secret.
#[derive(Debug, Error)]
pub enum DeliveryError {
    /// A program is not installed.
    #[error("{0} is not available here")]
    Missing(&'static str),
    /// A program cannot be run.
    #[error("cannot run {program}: {source}")]
    NotRun {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program}: {status}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// Certificates cannot be read.
    #[error("cannot read certificates from {path}: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The server refused it.
    #[error("answered {0}")]
    Refused(String),
}

/// Delivers a message, as the user of this process.
pub fn deliver(message: &Message) -> Result<(), DeliveryError> {
    match &message.by {
        Channel::Webhook(url) => webhook::post(url, message),
        Channel::Mail(address) => mail::send(address, message, &Zoned::now()),
        Channel::Desktop => desktop::show(message),
        Channel::Command(command) => command::run(command, message),
    }
}
