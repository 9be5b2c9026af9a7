//! A letter, handed to the machine's mailer.

use std::fmt::Write;

use jiff::Zoned;
use jiff::fmt::rfc2822;

use super::{DeliveryError, program};
use crate::notifications::message::{Message, one_line};

/// Letters of a subject.
const LONGEST_SUBJECT: usize = 120;
/// Bytes that one encoded word holds, so that it and what surrounds it stay within 75 letters.
const WORD: usize = 15;

/// Sends it.
pub(super) fn send(address: &str, message: &Message, now: &Zoned) -> Result<(), DeliveryError> {
    let letter = letter(address, message, now);
    program::run(&program::find("sendmail")?, letter.into_bytes(), |command| {
        command.args(["-t", "-i"]);
    })
}

/// The whole letter. Whom it is from, the mailer knows best.
fn letter(address: &str, message: &Message, now: &Zoned) -> String {
    let server: String = message.server.chars().filter(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(*letter)).collect();
    let subject = encoded(&one_line(&format!("[{}] {}", message.server, message.subject()), LONGEST_SUBJECT));
    let date = rfc2822::to_string(now).unwrap_or_default();
    let id = format!("<carma.{}.{}@{server}>", now.timestamp().as_millisecond(), std::process::id());
    let logs: Vec<String> =
        message.happened.iter().filter_map(|happened| Some(one_line(&happened.log.as_ref()?.display().to_string(), 900))).collect();
    let log = if let [log] = logs.as_slice() { format!("\n\nIts log: {log}") } else { String::new() };
    format!(
        "To: {address}\nSubject: {subject}\nDate: {date}\nMessage-ID: {id}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}{log}\n\n-- \ncarma on {}\n",
        message.body(),
        one_line(&message.server, 100),
    )
}

/// A text for the head of a letter (RFC 2047): as it is where it is plain ASCII, else in encoded words.
fn encoded(text: &str) -> String {
    if text.is_ascii() && !text.contains("=?") {
        return text.to_owned();
    }
    let (mut words, mut word, mut bytes) = (Vec::new(), String::new(), 0);
    for letter in text.chars() {
        // A letter is never cut in two.
        if bytes + letter.len_utf8() > WORD {
            words.push(std::mem::take(&mut word));
            bytes = 0;
        }
        bytes += letter.len_utf8();
        letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| quote(byte, &mut word));
    }
    words.push(word);
    words.iter().map(|word| format!("=?UTF-8?Q?{word}?=")).collect::<Vec<_>>().join("\n ")
}

fn quote(byte: u8, word: &mut String) {
    match byte {
        b' ' => word.push('_'),
        _ if byte.is_ascii_alphanumeric() => word.push(byte.into()),
        // Writing to a text cannot fail.
        _ => drop(write!(word, "={byte:02X}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Channel, Occasion};
    use crate::notifications::message::tests::{happened, message};

    #[test]
    fn a_letter_has_a_head_that_nobody_can_add_to() {
        let now: Zoned = "2027-01-15T08:00:00+00:00[UTC]".parse().unwrap();
        let mut sample = happened(Occasion::Failed, 7, "job 7 \"näme\" failed with exit code 1: it said\n.\nBcc: all@example.org");
        (sample.name, sample.log) = (Some("näme\nBcc: all@example.org".to_owned()), Some("/state/attempts/7/1/stderr.log".into()));
        let text = letter("ada@example.org", &message(Channel::Desktop, vec![sample]), &now);
        let text = text.replace(&std::process::id().to_string(), "PID");
        insta::assert_snapshot!("letter", text);
        let (head, _) = text.split_once("\n\n").unwrap();
        assert!(head.is_ascii() && head.lines().all(|line| line.len() < 78), "{head}");
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
    }

    #[test]
    fn words_are_encoded_whole() {
        assert_eq!(encoded("plain [x] 1"), "plain [x] 1");
        assert_eq!(encoded("é =?x"), "=?UTF-8?Q?=C3=A9_=3D=3Fx?=");
        let long = encoded(&"é".repeat(20));
        assert_eq!(long.lines().count(), 3);
        assert!(long.lines().all(|line| line.trim().len() <= 75 && line.ends_with("=C3=A9?=")), "{long}");
    }
}
