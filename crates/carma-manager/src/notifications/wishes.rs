//! What may be wished for: ways that lead somewhere, and not too many of them.

use std::fmt;

use hyper::Uri;
use thiserror::Error;

use crate::api::{Channel, Notification};

/// Wishes of one user.
const MOST: usize = 20;
/// Letters of an address of a webhook, and of a command.
const LONGEST: usize = 4000;
/// Letters of an address of mail.
const LONGEST_MAIL: usize = 254;

/// Why somebody cannot be told as they wish.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WishError {
    /// More than anybody needs.
    #[error("{0} notifications are too many: {MOST} are taken at most")]
    TooMany(usize),
    /// One way, twice.
    #[error("{0} is there twice: give it once, with all its occasions")]
    Twice(Channel),
    /// It would never be used.
    #[error("{0} has no occasion: give done, failed, recovered or idle")]
    Never(Channel),
    /// No place to send to. It is not repeated, as it may hold a secret.
    #[error("the webhook's address cannot be used, as {0}: write it as in https://hooks.example.org/services/T0KEN")]
    Webhook(&'static str),
    /// Nobody to write to.
    #[error("{0:?} is no address for mail: write it as in ada@example.org")]
    Mail(String),
    /// Nothing to run.
    #[error("the command cannot be used, as {0}")]
    Command(&'static str),
}

/// Refuses wishes that cannot be fulfilled.
pub fn check(notifications: &[Notification]) -> Result<(), WishError> {
    if notifications.len() > MOST {
        return Err(WishError::TooMany(notifications.len()));
    }
    for (place, Notification { on, by }) in notifications.iter().enumerate() {
        check_channel(by)?;
        if on.is_empty() {
            return Err(WishError::Never(by.clone()));
        }
        if notifications[..place].iter().any(|other| other.by == *by) {
            return Err(WishError::Twice(by.clone()));
        }
    }
    Ok(())
}

fn check_channel(channel: &Channel) -> Result<(), WishError> {
    match channel {
        Channel::Webhook(url) => check_webhook(url).map_err(WishError::Webhook),
        Channel::Mail(address) if is_mail(address) => Ok(()),
        Channel::Mail(address) => Err(WishError::Mail(address.chars().take(LONGEST_MAIL).collect())),
        Channel::Command(command) if command.trim().is_empty() => Err(WishError::Command("it is empty")),
        Channel::Command(command) if command.contains('\0') => Err(WishError::Command("it has a zero byte in it")),
        Channel::Command(command) if command.len() > LONGEST => Err(WishError::Command("it is too long: put it into a file")),
        Channel::Desktop | Channel::Command(_) => Ok(()),
    }
}

fn check_webhook(url: &str) -> Result<(), &'static str> {
    if url.len() > LONGEST {
        return Err("it is too long");
    }
    let uri: Uri = url.parse().map_err(|_| "it is no URL")?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => Err("a name and password in it are not sent"),
        (Some("http" | "https"), Some(authority)) if !authority.host().is_empty() => Ok(()),
        (Some("http" | "https") | None, _) => Err("it names no host with http:// or https://"),
        _ => Err("only http:// and https:// are spoken"),
    }
}

/// Plain addresses alone: whatever means more than its letters in the head of a letter or to a mailer is none.
fn is_mail(address: &str) -> bool {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-_=~".contains(&byte));
    let part = |text: &str| text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') && plain(text);
    let (name, host) = address.split_once('@').unwrap_or((address, "localhost"));
    address.len() <= LONGEST_MAIL && part(name) && part(host)
}

/// In words for everybody: the address of a webhook and a command may hold secrets, which are left out.
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
    fn ways_that_lead_nowhere_are_refused_without_their_secrets() {
        for good in ["https://hooks.example.org/T0KEN?x=1", "http://127.0.0.1:8080", "http://[::1]:80/"] {
            assert_eq!(refused(Channel::Webhook(good.to_owned())), "", "{good}");
        }
        let bad =
            ["", "T0KEN", "/T0KEN", "ftp://host/T0KEN", "https:///T0KEN", "https://host/T0 KEN", "https://me:T0KEN@host/", "http://h\n"];
        for bad in bad.map(str::to_owned).into_iter().chain([format!("https://host/{}", "x".repeat(LONGEST))]) {
            let words = refused(Channel::Webhook(bad.clone()));
            assert!(words.starts_with("the webhook's address cannot be used") && words.matches("T0KEN").count() == 1, "{bad}: {words}");
        }
        for good in ["ada@example.org", "ada.l+gpu@mail.example.org", "_root"] {
            assert_eq!(refused(Channel::Mail(good.to_owned())), "", "{good}");
        }
        for bad in ["", "@", "ada@", "a b@c", "ada@example.org\nBcc: all@example.org", "a,b@c", "<a@b>", "-f@b", "|sh", "a@b@c", "adä@b"] {
            assert!(refused(Channel::Mail(bad.to_owned())).contains("is no address for mail"), "{bad}");
        }
        assert_eq!(refused(Channel::Command(" ".to_owned())), "the command cannot be used, as it is empty");
        assert_eq!(refused(Channel::Command("x".repeat(LONGEST + 1))), "the command cannot be used, as it is too long: put it into a file");
        assert_eq!(refused(Channel::Command("a\0b".to_owned())), "the command cannot be used, as it has a zero byte in it");
    }

    #[test]
    fn one_way_is_given_once_with_its_occasions_and_few_are_enough() {
        let wish = |on: &[Occasion], name: &str| Notification { on: on.to_vec(), by: Channel::Mail(name.to_owned()) };
        let done = &[Occasion::Done][..];
        assert_eq!(check(&[wish(done, "ada"), wish(&[Occasion::Failed], "ada")]), Err(WishError::Twice(Channel::Mail("ada".to_owned()))));
        assert_eq!(check(&[wish(&[], "ada")]), Err(WishError::Never(Channel::Mail("ada".to_owned()))));
        let many = |count: usize| (0..count).map(|number| wish(done, &format!("ada{number}"))).collect::<Vec<_>>();
        assert_eq!([check(&many(MOST)), check(&many(MOST + 1))], [Ok(()), Err(WishError::TooMany(MOST + 1))]);
    }

    #[test]
    fn what_everybody_may_read_holds_no_secret() {
        let webhook = Channel::Webhook("https://hooks.example.org:8443/services/T0KEN".to_owned());
        let command = Channel::Command("curl -H 'Authorization: T0KEN' x".to_owned());
        assert_eq!([webhook.to_string(), command.to_string()], ["webhook at hooks.example.org:8443", "command"]);
    }
}
