//! The last output of a terminal, kept for clients that attach later or read slowly.

use std::collections::VecDeque;

/// How many bytes are kept.
pub(super) const CAPACITY: usize = 64 * 1024;

/// The last bytes of output, each with its position in all output.
#[derive(Debug, Default)]
pub(super) struct Scrollback {
    bytes: VecDeque<u8>,
    end: u64,
}

impl Scrollback {
    /// Adds output, and drops the oldest.
    pub(super) fn print(&mut self, printed: &[u8]) {
        let kept = &printed[printed.len().saturating_sub(CAPACITY)..];
        let too_many = (self.bytes.len() + kept.len()).saturating_sub(CAPACITY);
        self.bytes.drain(..too_many);
        self.bytes.extend(kept);
        self.end += printed.len() as u64;
    }

    /// The position after the last byte.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Start position of a new client: a whole line, if older output was dropped.
    pub(super) fn first(&self) -> u64 {
        let first = self.end - self.bytes.len() as u64;
        let line = if first == 0 { None } else { self.bytes.iter().position(|byte| *byte == b'\n') };
        first + line.map_or(0, |newline| newline as u64 + 1)
    }

    /// Output after a position, as far as it is kept, and the position after it; empty at the end.
    pub(super) fn after(&self, position: u64) -> (&[u8], u64) {
        let first = self.end - self.bytes.len() as u64;
        let seen = position.saturating_sub(first) as usize;
        let (older, newer) = self.bytes.as_slices();
        let bytes = older.get(seen..).filter(|bytes| !bytes.is_empty()).or_else(|| newer.get(seen.saturating_sub(older.len())..));
        let bytes = bytes.unwrap_or_default();
        (bytes, first + seen as u64 + bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(scrollback: &Scrollback, mut position: u64) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let (bytes, next) = scrollback.after(position);
            if bytes.is_empty() {
                return all;
            }
            all.extend(bytes);
            position = next;
        }
    }

    proptest! {
        #[test]
        fn the_scrollback_is_the_end_of_the_output(pieces in prop::collection::vec((any::<u8>(), 0_usize..90_000), 0..6), seen in 0_usize..200_000) {
            let (mut all, mut scrollback) = (Vec::new(), Scrollback::default());
            for (byte, length) in pieces {
                let piece: Vec<u8> = (0..length).map(|number| byte.wrapping_add(number as u8)).collect();
                scrollback.print(&piece);
                all.extend(piece);
            }
            let first = all.len().saturating_sub(CAPACITY);
            let seen = seen.min(all.len());
            prop_assert_eq!(read(&scrollback, seen as u64), &all[seen.max(first)..]);
            prop_assert_eq!(scrollback.end(), all.len() as u64);
            prop_assert!(scrollback.first() >= first as u64 && scrollback.first() <= scrollback.end());
        }
    }

    #[test]
    fn the_scrollback_begins_with_a_whole_line() {
        let mut scrollback = Scrollback::default();
        scrollback.print(b"first\n");
        assert_eq!(scrollback.first(), 0);
        scrollback.print(&b"0123456789\n".repeat(10_000));
        assert!(read(&scrollback, scrollback.first()).starts_with(b"0123456789\n"));
    }
}
