//! The arguments of `carma notify add`: events and channel.

use carma_manager::api::{Channel, Notification, Occasion};
use clap::{Args, ValueEnum};

use crate::manager::Manager;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  carma notify add --mail ada@example.org --on failed\n  \
carma notify add --webhook https://hooks.example.org/services/T0KEN\n  \
carma notify add --command 'echo \"$CARMA_TEXT\" >> jobs.txt'\n\n\
The command runs in your home folder with sh. CARMA_OCCASION, CARMA_JOB, CARMA_JOB_NAME, CARMA_TEXT, CARMA_SERVER and \
CARMA_LOG describe the event; standard input has the same as JSON. Notifications are sent with your rights.")]
#[group(id = "how", required = true, multiple = false, args = ["webhook", "mail", "desktop", "command"])]
pub(crate) struct AddArguments {
    /// Send JSON to this address. Slack, Mattermost and Discord can show it.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Send mail to this address, with sendmail of this machine.
    #[arg(long, value_name = "ADDRESS")]
    mail: Option<String>,
    /// Show a desktop notification on this machine (notify-send).
    #[arg(long)]
    desktop: bool,
    /// Run this command.
    #[arg(long, value_name = "SHELL")]
    command: Option<String>,
    /// Events to report [default: all].
    #[arg(long, value_delimiter = ',', value_name = "OCCASIONS")]
    on: Vec<Occasion>,
    #[command(flatten)]
    pub(super) manager: Manager,
}

impl AddArguments {
    /// The notification.
    pub(super) fn notification(&self) -> Notification {
        let by = match (&self.webhook, &self.mail, &self.command) {
            (Some(url), ..) => Channel::Webhook(url.clone()),
            (_, Some(address), _) => Channel::Mail(address.clone()),
            (.., Some(command)) => Channel::Command(command.clone()),
            (None, None, None) => Channel::Desktop,
        };
        let on = if self.on.is_empty() { Occasion::value_variants() } else { &self.on };
        Notification { on: on.to_vec(), by }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: AddArguments,
    }

    #[test]
    fn one_channel_is_required_and_all_occasions_are_the_default() {
        let read = |flags: &[&str]| Line::try_parse_from([&["add"], flags].concat()).map(|line| line.arguments.notification());
        let all = vec![Occasion::Done, Occasion::Failed, Occasion::Recovered, Occasion::Idle, Occasion::Stalled];
        assert_eq!(read(&["--desktop"]).unwrap(), Notification { on: all, by: Channel::Desktop });
        let failed = Notification { on: vec![Occasion::Failed, Occasion::Done], by: Channel::Mail("ada".to_owned()) };
        assert_eq!(read(&["--mail", "ada", "--on", "failed,done"]).unwrap(), failed);
        assert!(read(&[]).unwrap_err().to_string().contains("--webhook <URL>|--mail <ADDRESS>|--desktop|--command <SHELL>"));
        assert!(read(&["--desktop", "--mail", "ada"]).is_err() && read(&["--desktop", "--on", "never"]).is_err());
    }
}
