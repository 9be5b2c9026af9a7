//! A command of the user, run by the shell.

use std::path::Path;

use super::{DeliveryError, program};
use crate::notifications::message::{Message, word};

/// Runs the command in the working directory, the user's home. The variables describe the first event; its input holds all.
pub(super) fn run(command: &str, message: &Message) -> Result<(), DeliveryError> {
    let input = message.document().to_string().into_bytes();
    program::run(Path::new("/bin/sh"), input, |shell| {
        shell.arg("-c").arg(command).env("CARMA_TEXT", message.text()).env("CARMA_SERVER", &message.server);
        if let Some(first) = message.happened.first() {
            shell.env("CARMA_OCCASION", word(first.occasion)).env("CARMA_JOB", first.job.to_string());
            shell.env("CARMA_JOB_NAME", first.name.as_deref().unwrap_or_default().replace('\0', ""));
            shell.env("CARMA_LOG", first.log.as_deref().unwrap_or_default());
        }
    })
}
