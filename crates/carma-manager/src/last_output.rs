//! The last lines of a failed attempt: what its user wants to see first.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::api::{LastOutput, LogStream};
use crate::supervise::AttemptFolder;
use crate::untrusted::open_file;

/// How much of each log is read.
const TAIL: u64 = 16 << 10;
/// The most lines.
const MAX_LINES: usize = 10;
/// The longest line, in characters.
const MAX_LINE: usize = 400;

/// The last lines of the stream with the error; none if the attempt printed nothing.
pub(crate) fn last_output(folder: &AttemptFolder) -> Option<LastOutput> {
    let [output, errors] = [folder.output(), folder.errors()].map(|path| lines(&tail(&path).unwrap_or_default()));
    let (stream, lines) = choose(output, errors)?;
    Some(LastOutput { stream, lines })
}

/// Errors usually go to standard error. A program that reports its error on standard output may print warnings to standard error.
fn choose(output: Vec<String>, errors: Vec<String>) -> Option<(LogStream, Vec<String>)> {
    let reports = |lines: &[String]| {
        let line =
            |line: &String| ["traceback", "error", "exception", "fatal", "panic"].iter().any(|word| line.to_lowercase().contains(word));
        lines.iter().any(line)
    };
    match () {
        () if errors.is_empty() && output.is_empty() => None,
        () if errors.is_empty() || reports(&output) && !reports(&errors) => Some((LogStream::Stdout, output)),
        () => Some((LogStream::Stderr, errors)),
    }
}

/// The last lines that are not blank. Of a progress bar, its last state.
fn lines(text: &str) -> Vec<String> {
    let shown = |line: &str| line.trim_end().rsplit('\r').next().unwrap_or_default().chars().take(MAX_LINE).collect::<String>();
    let mut lines: Vec<String> = text.lines().rev().map(shown).filter(|line| !line.trim().is_empty()).take(MAX_LINES).collect();
    lines.reverse();
    lines
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = open_file(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_stream_with_the_error_is_shown() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = AttemptFolder::at(scratch.path());
        let last = |output: &str, errors: &str| {
            fs::write(folder.output(), output).unwrap();
            fs::write(folder.errors(), errors).unwrap();
            last_output(&folder).map(|last| (last.stream, last.lines.join("|")))
        };
        assert_eq!(last("", "\n"), None);
        let traceback = "Traceback (most recent call last):\n  File \"a.py\"\nValueError: no\n\n";
        let shown = "Traceback (most recent call last):|  File \"a.py\"|ValueError: no".to_owned();
        assert_eq!(last("epoch 1\n", traceback), Some((LogStream::Stderr, shown.clone())));
        assert_eq!(last(traceback, "warning: slow\n"), Some((LogStream::Stdout, shown)));
        assert_eq!(last("epoch 1\n", ""), Some((LogStream::Stdout, "epoch 1".to_owned())));
        assert_eq!(last("", " 1%\r 2%\r 3%"), Some((LogStream::Stderr, " 3%".to_owned())));
        let many: String = "line\n".repeat(50);
        assert_eq!(last("", &many).unwrap().1.split('|').count(), MAX_LINES);
    }
}
