//! Frames between a terminal and its client: a byte for the kind, four for the length (big-endian), then the content.

use thiserror::Error;

use crate::attempt::{Exit, TerminalSize};

/// The longest content. A longer one is an error or an attack.
const MAX_LENGTH: usize = 64 * 1024;
const HEADER: usize = 5;

const DATA: u8 = b'd';
const RESIZE: u8 = b'r';
const TAKEN_OVER: u8 = b't';
const ENDED: u8 = b'e';

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Input or output.
    Data(Vec<u8>),
    /// The size of the client's terminal.
    Resize(TerminalSize),
    /// Another client is attached now: the last frame for this one.
    TakenOver,
    /// The job ended: the last frame.
    Ended(Exit),
}

/// An invalid frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// There is no such kind.
    #[error("a message of unknown kind {0}: do both sides have the same version?")]
    Unknown(u8),
    /// Too long.
    #[error("a message of {0} bytes: the limit is {MAX_LENGTH}")]
    TooLong(u32),
    /// The content does not fit the kind.
    #[error("a damaged message of kind {0}")]
    Damaged(u8),
}

impl Frame {
    /// Encodes data into as many frames as it takes.
    pub fn encode_data(data: &[u8], wire: &mut Vec<u8>) {
        data.chunks(MAX_LENGTH).for_each(|chunk| put(DATA, chunk, wire));
    }

    /// Encodes the frame.
    pub fn encode(&self, wire: &mut Vec<u8>) {
        match self {
            Self::Data(data) => Self::encode_data(data, wire),
            Self::Resize(TerminalSize { rows, columns }) => put(RESIZE, &[rows.to_be_bytes(), columns.to_be_bytes()].concat(), wire),
            Self::TakenOver => put(TAKEN_OVER, &[], wire),
            Self::Ended(exit) => put(ENDED, &serde_json::to_vec(exit).unwrap_or_default(), wire),
        }
    }

    fn decode(kind: u8, content: &[u8]) -> Result<Self, FrameError> {
        match (kind, content) {
            (DATA, data) => Ok(Self::Data(data.to_vec())),
            (RESIZE, &[a, b, c, d]) => {
                Ok(Self::Resize(TerminalSize { rows: u16::from_be_bytes([a, b]), columns: u16::from_be_bytes([c, d]) }))
            }
            (TAKEN_OVER, []) => Ok(Self::TakenOver),
            (ENDED, exit) => serde_json::from_slice(exit).map(Self::Ended).map_err(|_| FrameError::Damaged(kind)),
            (RESIZE | TAKEN_OVER, _) => Err(FrameError::Damaged(kind)),
            (kind, _) => Err(FrameError::Unknown(kind)),
        }
    }
}

fn put(kind: u8, content: &[u8], wire: &mut Vec<u8>) {
    wire.push(kind);
    wire.extend((content.len() as u32).to_be_bytes());
    wire.extend(content);
}

/// Decodes frames from bytes, however they arrive.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next frame, once it has arrived completely. After an error, nothing more can be decoded.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((&[kind, a, b, c, d], rest)) = self.bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]);
        if ![DATA, RESIZE, TAKEN_OVER, ENDED].contains(&kind) {
            return Err(FrameError::Unknown(kind));
        }
        if length as usize > MAX_LENGTH {
            return Err(FrameError::TooLong(length));
        }
        let Some(content) = rest.get(..length as usize) else { return Ok(None) };
        let frame = Frame::decode(kind, content)?;
        self.bytes.drain(..HEADER + length as usize);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let exit = prop_oneof![
            any::<i32>().prop_map(Exit::Code),
            any::<i32>().prop_map(Exit::Signal),
            ".*".prop_map(Exit::NotStarted),
            any::<u16>().prop_map(|seconds| Exit::Idle(Seconds::from_secs(seconds.into()))),
        ];
        let frame = prop_oneof![
            prop::collection::vec(any::<u8>(), 1..200).prop_map(Frame::Data),
            any::<(u16, u16)>().prop_map(|(rows, columns)| Frame::Resize(TerminalSize { rows, columns })),
            Just(Frame::TakenOver),
            exit.prop_map(Frame::Ended),
        ];
        prop::collection::vec(frame, 0..20)
    }

    fn decoded(wire: &[u8], pieces: usize) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        for piece in wire.chunks(pieces) {
            decoder.take(piece);
            while let Some(frame) = decoder.next_frame()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_arrive_in_any_pieces(sent in frames(), pieces in 1_usize..300) {
            let mut wire = Vec::new();
            for frame in &sent {
                frame.encode(&mut wire);
            }
            prop_assert_eq!(decoded(&wire, pieces), Ok(sent));
        }

        #[test]
        fn any_bytes_are_a_message_or_refused(wire in prop::collection::vec(any::<u8>(), 0..300), pieces in 1_usize..300) {
            for frame in decoded(&wire, pieces).into_iter().flatten() {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert!(again.len() <= HEADER + MAX_LENGTH);
            }
        }
    }

    #[test]
    fn long_and_unknown_frames_are_refused_by_their_header() {
        assert_eq!(decoded(b"d\x00\x01\x00\x01", 1), Err(FrameError::TooLong(65_537)));
        assert_eq!(decoded(b"e\xff\xff\xff\xff", 5), Err(FrameError::TooLong(u32::MAX)));
        assert_eq!(decoded(b"x\x00\x00\x00\x09", 5), Err(FrameError::Unknown(b'x')));
        assert_eq!(decoded(b"r\x00\x00\x00\x03abc", 8), Err(FrameError::Damaged(b'r')));
        assert_eq!(decoded(b"e\x00\x00\x00\x02{}", 7), Err(FrameError::Damaged(b'e')));
    }

    #[test]
    fn long_data_takes_several_frames() {
        let (data, mut wire) = (vec![b'x'; 150_000], Vec::new());
        Frame::Data(data.clone()).encode(&mut wire);
        let frames = decoded(&wire, 1000).unwrap();
        let joined: Vec<u8> =
            frames.iter().flat_map(|frame| if let Frame::Data(data) = frame { data.clone() } else { Vec::new() }).collect();
        assert_eq!((frames.len(), joined), (3, data));
    }
}
