//! A mail, handed to the machine's mailer.

use jiff::Zoned;
use mail_builder::MessageBuilder;
use mail_builder::headers::date::Date;
use mail_builder::headers::raw::Raw;

use super::{DeliveryError, program};
use crate::notifications::message::{Message, one_line};

/// Letters of a subject.
const MAX_SUBJECT: usize = 120;

/// Sends it.
pub(super) fn send(address: &str, message: &Message, now: &Zoned) -> Result<(), DeliveryError> {
    let mail = mail(address, message, now);
    program::run(&program::find("sendmail")?, mail.into_bytes(), |command| {
        command.args(["-t", "-i"]);
    })
}

/// The whole mail. The mailer adds the sender.
fn mail(address: &str, message: &Message, now: &Zoned) -> String {
    let server: String = message.server.chars().filter(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(*letter)).collect();
    let logs: Vec<&String> = message.happened.iter().filter_map(|happened| happened.log.as_ref()).collect();
    let log = if let [log] = logs.as_slice() { format!("\n\nIts log: {log}") } else { String::new() };
    let mail = MessageBuilder::new()
        .to(address)
        .subject(one_line(&format!("[{}] {}", message.server, message.subject()), MAX_SUBJECT))
        .date(Date::new(now.timestamp().as_second()))
        .message_id(format!("carma.{}.{}@{server}", now.timestamp().as_millisecond(), std::process::id()))
        .header("Auto-Submitted", Raw::new("auto-generated"))
        .text_body(format!("{}{log}\n\n-- \ncarma on {}\n", message.body(), one_line(&message.server, 100)));
    // Mailers take lines as files of this system have them. Writing to memory cannot fail.
    mail.write_to_string().unwrap_or_default().replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Channel, Occasion};
    use crate::notifications::message::tests::{happened, message};

    #[test]
    fn a_mail_has_headers_that_a_job_cannot_add_to() {
        let now: Zoned = "2027-01-15T08:00:00+00:00[UTC]".parse().unwrap();
        let mut sample = happened(Occasion::Failed, 7, "job 7 \"näme\" failed with exit code 1: it said\n.\nBcc: all@example.org");
        (sample.name, sample.log) = (Some("näme\nBcc: all@example.org".to_owned()), Some("carma logs 7".to_owned()));
        let text = mail("ada@example.org", &message(Channel::Desktop, vec![sample]), &now);
        let text = text.replace(&std::process::id().to_string(), "PID");
        insta::assert_snapshot!("mail", text);
        let (headers, _) = text.split_once("\n\n").unwrap();
        assert!(headers.is_ascii() && headers.lines().all(|line| line.len() < 78), "{headers}");
        assert!(!headers.lines().any(|line| line.starts_with("Bcc")), "{headers}");
    }
}
