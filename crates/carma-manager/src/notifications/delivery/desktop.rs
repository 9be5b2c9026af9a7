//! Desktop notifications on this machine.

use std::path::Path;

use super::{DeliveryError, program};
use crate::notifications::message::Message;

/// The variable with the address of the session bus.
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// Shows it.
pub(super) fn show(message: &Message) -> Result<(), DeliveryError> {
    let bus = format!("/run/user/{}/bus", rustix::process::geteuid().as_raw());
    program::run(&program::find("notify-send")?, Vec::new(), |command| {
        command.args(["--app-name=carma", "--", &format!("{}: {}", message.server, message.subject()), &escaped(&message.body())]);
        if std::env::var_os(BUS).is_none() && Path::new(&bus).exists() {
            command.env(BUS, format!("unix:path={bus}"));
        }
    })
}

/// Desktop notifications interpret some HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_jobs_are_escaped() {
        assert_eq!(escaped("a <b>&amp;"), "a &lt;b&gt;&amp;amp;");
    }
}
