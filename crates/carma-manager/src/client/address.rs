//! The address of a manager, and the token for it.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::ClientError;
use crate::contact::Contact;
use crate::places::Places;

/// The variable with the address of a manager on another host.
pub const HOST_VARIABLE: &str = "CARMA_HOST";
/// The variable with the token for it.
pub const TOKEN_VARIABLE: &str = "CARMA_TOKEN";
/// The variable with the file of trusted certificates (PEM).
pub const CA_VARIABLE: &str = "CARMA_CA";

/// The address of a manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket of this host.
    Socket(PathBuf),
    /// A TCP port.
    Network {
        /// The host name or IP address.
        host: String,
        /// The port.
        port: u16,
        /// Whether the connection is encrypted.
        encrypted: bool,
    },
    /// The user's own manager on another host, as its file says.
    Own(Box<Contact>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Own(_) => write!(f, "https://{}", self.authority()),
            Self::Network { encrypted, .. } => write!(f, "{}://{}", if *encrypted { "https" } else { "http" }, self.authority()),
        }
    }
}

impl Address {
    /// The value of the `Host` header.
    pub(super) fn authority(&self) -> String {
        match self {
            Self::Socket(_) => "localhost".to_owned(),
            Self::Own(contact) => format!("{}:{}", contact.host, contact.port),
            Self::Network { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Network { host, port, .. } => format!("{host}:{port}"),
        }
    }
}

/// Reads `http://localhost:7080` or `https://server:7080`.
impl FromStr for Address {
    type Err = ClientError;
    fn from_str(text: &str) -> Result<Self, ClientError> {
        let read = || {
            let (scheme, rest) = text.split_once("://")?;
            let encrypted = match scheme {
                "http" => false,
                "https" => true,
                _ => return None,
            };
            let (host, port) = rest.strip_suffix('/').unwrap_or(rest).rsplit_once(':')?;
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let named = |host: &str| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
            let valid = bare.map_or_else(|| named(host), |number| number.parse::<std::net::Ipv6Addr>().is_ok());
            valid.then_some(Self::Network { host: bare.unwrap_or(host).to_owned(), port: port.parse().ok()?, encrypted })
        };
        read().ok_or_else(|| {
            ClientError::Unusable(format!("{text:?} is not an address of a manager: write https://server:7080, or http://localhost:7080"))
        })
    }
}

/// A secret that authenticates the user. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Token {
    /// Reads a token. Surrounding whitespace is ignored.
    pub fn new(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ClientError::Unusable("the token is empty, or contains spaces or non-ASCII characters".to_owned()))
        }
    }

    /// The token of the current user: from the variable, or else from the file.
    pub(super) fn own() -> Result<Option<Self>, ClientError> {
        if let Ok(text) = std::env::var(TOKEN_VARIABLE) {
            return Self::new(&text).map(Some);
        }
        Self::read(&Places::own_user().configuration.with_file_name("token"))
    }

    fn read(file: &Path) -> Result<Option<Self>, ClientError> {
        match fs::read_to_string(file) {
            Ok(text) => Self::new(&text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ClientError::Unusable(format!("cannot read the token in {}: {error}", file.display()))),
        }
    }

    /// The value of the `Authorization` header.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_written() {
        for address in ["http://localhost:7080", "https://gpu-1.example.org:443", "http://127.0.0.1:1", "https://[::1]:7080"] {
            assert_eq!(address.parse::<Address>().unwrap().to_string(), address);
        }
        for wrong in
            ["", "localhost:7080", "ftp://a:1", "http://a", "http://:1", "http://a:b", "http://a b:1", "http://a:1/x", "http://::1:1"]
        {
            assert!(wrong.parse::<Address>().unwrap_err().to_string().contains("write https://server:7080"), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_not_shown_and_carry_nothing_into_headers() {
        let token = Token::new(" abc\n").unwrap();
        assert_eq!((token.header().as_str(), format!("{token:?}").as_str()), ("Bearer abc", "Token(hidden)"));
        assert!(["", " ", "a b", "a\r\nX: y"].into_iter().all(|text| Token::new(text).is_err()));
    }

    #[test]
    fn a_token_may_be_in_a_file_that_need_not_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert_eq!(Token::read(&file).unwrap(), None);
        fs::write(&file, "abc\n").unwrap();
        assert_eq!(Token::read(&file).unwrap(), Some(Token("abc".to_owned())));
    }
}
