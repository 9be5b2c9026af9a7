//! Encryption of the connection: the Noise protocol with a shared secret, as messages of any length over short frames.
//!
//! A frame is two bytes of length and that many encrypted bytes. A message is four bytes of length and JSON, cut into frames.
//! There is no I/O here: the agent uses threads, the manager tasks.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use snow::{Builder, HandshakeState, StatelessTransportState};
use thiserror::Error;

use super::secret::Secret;

/// Both sides need the secret; ephemeral keys give forward secrecy.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Bound to the handshake: programs of different protocol versions do not talk.
const PROLOGUE: &[u8] = b"carma agent 1";
/// The longest frame of Noise, and its share of plain bytes.
const MAX_FRAME: usize = 65_535;
const TAG: usize = 16;
const MAX_PLAIN: usize = MAX_FRAME - TAG;
/// No message is longer: a request with its environment, or the last part of two logs.
const MAX_MESSAGE: usize = 32 << 20;

/// Why a connection cannot continue.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    /// The other side does not know the secret, or speaks another protocol.
    #[error("the other side has another secret or another version")]
    Secret,
    /// What arrived makes no sense.
    #[error("the other side sent invalid data: {0}")]
    Message(String),
    /// The message is too long.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
}

impl From<snow::Error> for LinkError {
    fn from(_: snow::Error) -> Self {
        Self::Secret
    }
}

/// A handshake: one message each way, the agent's first.
#[derive(Debug)]
pub(crate) struct Handshake(HandshakeState);

impl Handshake {
    /// The handshake of the agent.
    pub(crate) fn agent(secret: &Secret) -> Result<Self, LinkError> {
        Ok(Self(builder(secret)?.build_initiator()?))
    }

    /// The handshake of the manager.
    pub(crate) fn manager(secret: &Secret) -> Result<Self, LinkError> {
        Ok(Self(builder(secret)?.build_responder()?))
    }

    /// The frame to send.
    pub(crate) fn write(&mut self) -> Result<Vec<u8>, LinkError> {
        let mut sealed = vec![0; MAX_FRAME];
        let length = self.0.write_message(&[], &mut sealed)?;
        sealed.truncate(length);
        Ok(frame(&sealed))
    }

    /// Takes the content of the other side's frame.
    pub(crate) fn read(&mut self, content: &[u8]) -> Result<(), LinkError> {
        self.0.read_message(content, &mut vec![0; MAX_FRAME])?;
        Ok(())
    }

    /// After both messages.
    pub(crate) fn finish(self) -> Result<Cipher, LinkError> {
        let state = Arc::new(self.0.into_stateless_transport_mode()?);
        Ok(Cipher {
            sealer: Encryptor { state: Arc::clone(&state), sent: 0 },
            opener: Decryptor { state, received: 0, message: Vec::new() },
        })
    }
}

fn builder(secret: &Secret) -> Result<Builder<'_>, LinkError> {
    let pattern = PATTERN.parse().map_err(|_| LinkError::Secret)?;
    Ok(Builder::new(pattern).prologue(PROLOGUE)?.psk(0, secret.bytes())?)
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Cipher {
    pub(crate) sealer: Encryptor,
    pub(crate) opener: Decryptor,
}

/// Encrypts messages, in order.
#[derive(Debug)]
pub(crate) struct Encryptor {
    state: Arc<StatelessTransportState>,
    sent: u64,
}

impl Encryptor {
    /// The frames of a message.
    pub(crate) fn seal(&mut self, message: &impl Serialize) -> Result<Vec<u8>, LinkError> {
        let json = serde_json::to_vec(message).map_err(|error| LinkError::Message(error.to_string()))?;
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX_MESSAGE).ok_or(LinkError::TooLong(json.len()))?;
        let plain = [&length.to_be_bytes()[..], &json].concat();
        let mut frames = Vec::with_capacity(plain.len() + 64);
        let mut sealed = vec![0; MAX_FRAME];
        for part in plain.chunks(MAX_PLAIN) {
            let length = self.state.write_message(self.sent, part, &mut sealed)?;
            self.sent += 1;
            frames.extend(frame(&sealed[..length]));
        }
        Ok(frames)
    }
}

/// Decrypts messages, in order.
#[derive(Debug)]
pub(crate) struct Decryptor {
    state: Arc<StatelessTransportState>,
    received: u64,
    /// What arrived of the next message.
    message: Vec<u8>,
}

impl Decryptor {
    /// Takes the content of a frame; returns a message when it is complete.
    pub(crate) fn open<T: DeserializeOwned>(&mut self, content: &[u8]) -> Result<Option<T>, LinkError> {
        let mut plain = vec![0; content.len()];
        let length = self.state.read_message(self.received, content, &mut plain)?;
        self.received += 1;
        self.message.extend_from_slice(&plain[..length]);
        let Some((length, json)) = self.message.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_MESSAGE {
            return Err(LinkError::TooLong(length));
        }
        if json.len() < length {
            return Ok(None);
        }
        let message = serde_json::from_slice(&json[..length]).map_err(|error| LinkError::Message(error.to_string()))?;
        self.message = Vec::new();
        Ok(Some(message))
    }
}

fn frame(content: &[u8]) -> Vec<u8> {
    // Noise never makes longer ones.
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(folder: &tempfile::TempDir, name: &str) -> Secret {
        Secret::read_or_create(&folder.path().join(name)).unwrap()
    }

    /// The content of each frame.
    fn contents(mut frames: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((length, rest)) = frames.split_first_chunk::<2>() {
            let (content, rest) = rest.split_at(u16::from_be_bytes(*length).into());
            all.push(content.to_vec());
            frames = rest;
        }
        all
    }

    fn connect(agent: &Secret, manager: &Secret) -> Result<(Cipher, Cipher), LinkError> {
        let (mut ours, mut theirs) = (Handshake::agent(agent)?, Handshake::manager(manager)?);
        theirs.read(&contents(&ours.write()?)[0])?;
        ours.read(&contents(&theirs.write()?)[0])?;
        Ok((ours.finish()?, theirs.finish()?))
    }

    #[test]
    fn messages_of_any_length_arrive_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let secret = secret(&folder, "a");
        let (mut agent, mut manager) = connect(&secret, &secret).unwrap();
        for text in ["short".to_owned(), String::new(), "long ".repeat(100_000)] {
            let frames = agent.sealer.seal(&text).unwrap();
            assert!(text.is_empty() || !frames.windows(5).any(|window| window == &text.as_bytes()[..5]), "it is encrypted");
            let arrived: Vec<String> = contents(&frames).iter().filter_map(|content| manager.opener.open(content).unwrap()).collect();
            assert_eq!(arrived, [text]);
        }
    }

    #[test]
    fn another_secret_and_changed_or_repeated_frames_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (secret(&folder, "a"), secret(&folder, "b"));
        assert!(matches!(connect(&other, &ours), Err(LinkError::Secret)));
        let (mut agent, mut manager) = connect(&ours, &ours).unwrap();
        let frame = contents(&agent.sealer.seal(&7).unwrap()).remove(0);
        let mut changed = frame.clone();
        changed[3] ^= 1;
        assert!(manager.opener.open::<u32>(&changed).is_err());
        assert_eq!(manager.opener.open::<u32>(&frame).unwrap(), Some(7));
        assert!(manager.opener.open::<u32>(&frame).is_err(), "sent twice");
    }
}
