//! Wire format of protocol buffers, as far as needed: numbered fields, without copies.

use super::super::error::{ParseError, Problem};

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(Message<'a>),
    Float(f32),
    /// Eight bytes; not used in any needed field.
    Other,
}

/// Fields of a message, and its offset in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Message<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, start: 0 }
    }

    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) const fn start(&self) -> usize {
        self.start
    }

    pub(super) fn text(&self) -> Result<&'a str, ParseError> {
        std::str::from_utf8(self.bytes).map_err(|_| Problem::NotText.at_byte(self.start))
    }

    /// The next field and its value; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, ParseError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => {
                self.take(8)?;
                Value::Other
            }
            2 => {
                let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?.bytes;
                Value::Float(f32::from_le_bytes(bytes.try_into().unwrap_or_default()))
            }
            _ => return Err(self.broken()),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// Numbers of a packed field.
    pub(super) fn numbers(mut self) -> Result<Vec<u64>, ParseError> {
        let mut numbers = Vec::new();
        while !self.bytes.is_empty() {
            numbers.push(self.number()?);
        }
        Ok(numbers)
    }

    /// A varint: seven bits per byte, lowest first, the eighth bit set on all but the last.
    fn number(&mut self) -> Result<u64, ParseError> {
        let mut number = 0_u64;
        for place in 0..10 {
            let Some((&byte, rest)) = self.bytes.split_first() else { break };
            self.bytes = rest;
            self.start += 1;
            number |= u64::from(byte & 0x7f).checked_shl(place * 7).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.broken())
    }

    fn take(&mut self, length: usize) -> Result<Self, ParseError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else { return Err(self.broken()) };
        let message = Self { bytes: taken, start: self.start };
        self.bytes = rest;
        self.start = self.start.saturating_add(length);
        Ok(message)
    }

    fn broken(&self) -> ParseError {
        Problem::Missing("the graph is truncated here: export it again, or copy the whole file".to_owned()).at_byte(self.start)
    }
}
