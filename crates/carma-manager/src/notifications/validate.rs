//! Validation of a user's notifications: usable channels, and not too many.

use std::fmt;

use hyper::Uri;
use thiserror::Error;

use crate::api::{Channel, Notification};

/// The most notifications of one user.
const MAX_NOTIFICATIONS: usize = 20;
/// The longest webhook address or command, in bytes.
const MAX_LENGTH: usize = 4000;
/// The longest mail address, in bytes.
const MAX_MAIL: usize = 254;

/// Why notifications are not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotificationError {
    /// There are too many.
    #[error("{0} notifications are too many: {MAX_NOTIFICATIONS} are taken at most")]
    TooMany(usize),
    /// A channel occurs twice.
    #[error("{0} is given twice: give it once with all occasions")]
    Twice(Channel),
    /// A channel has no occasion.
    #[error("{0} needs an occasion: give done, failed, recovered or idle")]
    Never(Channel),
    /// A webhook address is not valid. The message omits it: it may hold a secret.
    #[error("the webhook's address cannot be used, as {0}: write it as in https://hooks.example.org/services/T0KEN")]
    Webhook(&'static str),
    /// A mail address is not valid.
    #[error("{0:?} is not a mail address: write it as in ada@example.org")]
    Mail(String),
    /// A command is not valid.
    #[error("the command cannot be used, as {0}")]
    Command(&'static str),
}

/// Checks a user's notifications.
pub fn check(notifications: &[Notification]) -> Result<(), NotificationError> {
    if notifications.len() > MAX_NOTIFICATIONS {
        return Err(NotificationError::TooMany(notifications.len()));
    }
    for (place, Notification { on, by }) in notifications.iter().enumerate() {
        check_channel(by)?;
        if on.is_empty() {
            return Err(NotificationError::Never(by.clone()));
        }
        if notifications[..place].iter().any(|other| other.by == *by) {
            return Err(NotificationError::Twice(by.clone()));
        }
    }
    Ok(())
}

fn check_channel(channel: &Channel) -> Result<(), NotificationError> {
    match channel {
        Channel::Webhook(url) => check_webhook(url).map_err(NotificationError::Webhook),
        Channel::Mail(address) if is_mail(address) => Ok(()),
        Channel::Mail(address) => Err(NotificationError::Mail(address.chars().take(MAX_MAIL).collect())),
        Channel::Command(command) if command.trim().is_empty() => Err(NotificationError::Command("it is empty")),
        Channel::Command(command) if command.contains('\0') => Err(NotificationError::Command("it contains a zero byte")),
        Channel::Command(command) if command.len() > MAX_LENGTH => Err(NotificationError::Command("it is too long: put it into a file")),
        Channel::Desktop | Channel::Command(_) => Ok(()),
    }
}

fn check_webhook(url: &str) -> Result<(), &'static str> {
    if url.len() > MAX_LENGTH {
        return Err("it is too long");
    }
    let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("it contains a name or password, which are not sent")
        }
        (Some("http" | "https"), Some(authority)) if !authority.host().is_empty() => Ok(()),
        (Some("http" | "https") | None, _) => Err("it needs http:// or https:// and a host"),
        _ => Err("only http:// and https:// are supported"),
    }
}

/// Only plain addresses: no characters with a meaning in mail headers or to mailers.
fn is_mail(address: &str) -> bool {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-_=~".contains(&byte));
    let part = |text: &str| text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') && plain(text);
    let (name, host) = address.split_once('@').unwrap_or((address, "localhost"));
    address.len() <= MAX_MAIL && part(name) && part(host)
}

/// A text without secrets: webhook paths and commands are left out.
impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(url) => write!(f, "webhook at {}", host(url)),
            Self::Mail(address) => write!(f, "mail to {address}"),
            Self::Desktop => f.write_str("desktop"),
            Self::Command(_) => f.write_str("command"),
        }
    }
}

/// The host of a webhook, with its port where one is given.
pub(super) fn host(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    let authority = uri.as_ref().and_then(Uri::authority);
    authority.map_or_else(|| "no host".to_owned(), |authority| authority.as_str().rsplit('@').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Occasion;

    fn refused(by: Channel) -> String {
        check(&[Notification { on: vec![Occasion::Done], by }]).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn invalid_channels_are_refused_without_their_secrets() {
        for good in ["https://hooks.example.org/T0KEN?x=1", "http://127.0.0.1:8080", "http://[::1]:80/"] {
            assert_eq!(refused(Channel::Webhook(good.to_owned())), "", "{good}");
        }
        let bad =
            ["", "T0KEN", "/T0KEN", "ftp://host/T0KEN", "https:///T0KEN", "https://host/T0 KEN", "https://me:T0KEN@host/", "http://h\n"];
        for bad in bad.map(str::to_owned).into_iter().chain([format!("https://host/{}", "x".repeat(MAX_LENGTH))]) {
            let words = refused(Channel::Webhook(bad.clone()));
            assert!(words.starts_with("the webhook's address cannot be used") && words.matches("T0KEN").count() == 1, "{bad}: {words}");
        }
        for good in ["ada@example.org", "ada.l+gpu@mail.example.org", "_root"] {
            assert_eq!(refused(Channel::Mail(good.to_owned())), "", "{good}");
        }
        for bad in ["", "@", "ada@", "a b@c", "ada@example.org\nBcc: all@example.org", "a,b@c", "<a@b>", "-f@b", "|sh", "a@b@c", "adä@b"] {
            assert!(refused(Channel::Mail(bad.to_owned())).contains("is not a mail address"), "{bad}");
        }
        assert_eq!(refused(Channel::Command(" ".to_owned())), "the command cannot be used, as it is empty");
        assert_eq!(
            refused(Channel::Command("x".repeat(MAX_LENGTH + 1))),
            "the command cannot be used, as it is too long: put it into a file"
        );
        assert_eq!(refused(Channel::Command("a\0b".to_owned())), "the command cannot be used, as it contains a zero byte");
    }

    #[test]
    fn each_channel_is_given_once_and_the_number_is_limited() {
        let wish = |on: &[Occasion], name: &str| Notification { on: on.to_vec(), by: Channel::Mail(name.to_owned()) };
        let done = &[Occasion::Done][..];
        assert_eq!(
            check(&[wish(done, "ada"), wish(&[Occasion::Failed], "ada")]),
            Err(NotificationError::Twice(Channel::Mail("ada".to_owned())))
        );
        assert_eq!(check(&[wish(&[], "ada")]), Err(NotificationError::Never(Channel::Mail("ada".to_owned()))));
        let many = |count: usize| (0..count).map(|number| wish(done, &format!("ada{number}"))).collect::<Vec<_>>();
        assert_eq!(
            [check(&many(MAX_NOTIFICATIONS)), check(&many(MAX_NOTIFICATIONS + 1))],
            [Ok(()), Err(NotificationError::TooMany(MAX_NOTIFICATIONS + 1))]
        );
    }

    #[test]
    fn public_texts_contain_no_secret() {
        let webhook = Channel::Webhook("https://hooks.example.org:8443/services/T0KEN".to_owned());
        let command = Channel::Command("curl -H 'Authorization: T0KEN' x".to_owned());
        assert_eq!([webhook.to_string(), command.to_string()], ["webhook at hooks.example.org:8443", "command"]);
    }
}
