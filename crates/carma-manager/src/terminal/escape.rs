//! The keys that detach: `~.` at the beginning of a line, as in ssh.

/// Scans the input, and holds a `~` back until its meaning is known.
#[derive(Debug)]
pub(super) struct Escape {
    last: LastTyped,
}

/// What was typed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastTyped {
    Newline,
    Tilde,
    Other,
}

/// The result of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EscapeResult {
    /// Input for the job.
    pub(super) bytes: Vec<u8>,
    /// Input for the job, and then the keys that detach.
    pub(super) detach: bool,
}

impl Escape {
    /// The start of the input counts as a new line.
    pub(super) const fn new() -> Self {
        Self { last: LastTyped::Newline }
    }

    /// Scans what was typed.
    pub(super) fn take(&mut self, typed: &[u8]) -> EscapeResult {
        let mut bytes = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            match (self.last, byte) {
                (LastTyped::Newline, b'~') => {
                    self.last = LastTyped::Tilde;
                    continue;
                }
                (LastTyped::Tilde, b'.') => return EscapeResult { bytes, detach: true },
                // `~~` is one `~`.
                (LastTyped::Tilde, b'~') | (LastTyped::Newline | LastTyped::Other, _) => {}
                (LastTyped::Tilde, _) => bytes.push(b'~'),
            }
            bytes.push(byte);
            self.last = if matches!(byte, b'\r' | b'\n') { LastTyped::Newline } else { LastTyped::Other };
        }
        EscapeResult { bytes, detach: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_and_a_dot_after_a_newline_detach() {
        for (typed, bytes, detach) in [
            ("~.rest", "", true),
            ("ls\r~.", "ls\r", true),
            ("ls\n~.", "ls\n", true),
            ("ls ~.", "ls ~.", false),
            ("~~.\r", "~.\r", false),
            ("~/bin\r", "~/bin\r", false),
            ("~\r~.", "~\r", true),
            ("x~\r~x", "x~\r~x", false),
            ("~", "", false),
        ] {
            for pieces in [1, 2, 100] {
                let mut escape = Escape::new();
                let (mut seen, mut left) = (Vec::new(), false);
                for piece in typed.as_bytes().chunks(pieces) {
                    let found = escape.take(piece);
                    seen.extend(found.bytes);
                    left = found.detach;
                    if left {
                        break;
                    }
                }
                assert_eq!((String::from_utf8(seen).unwrap().as_str(), left), (bytes, detach), "{typed:?} in pieces of {pieces}");
            }
        }
    }
}
