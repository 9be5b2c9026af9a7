//! The connection between the manager and the agents on other servers.
//!
//! ```text
//!  agent ── TCP ──► Noise handshake with a shared secret ──► encrypted messages, both ways
//! ```
//!
//! The agent opens the connection, because compute nodes rarely accept any. Both sides prove that they know the secret; without it nothing is read.

mod cipher;
mod ends;
mod message;
mod secret;

pub(crate) use self::cipher::{Cipher, Decryptor, Encryptor, Handshake, LinkError};
pub(crate) use self::ends::{read_end, remove_end, write_end};
pub(crate) use self::message::{
    AgentHello, AttemptNote, EstimateAnswer, EstimateMessage, FromAgent, LogPiece, LogStream, StartMessage, TerminalEvent, TerminalMessage,
    ToAgent, WireSample,
};
pub(crate) use self::secret::random_name;
pub use self::secret::{Secret, SecretError};
