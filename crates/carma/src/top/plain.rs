//! The output of a job as plain lines: as a terminal would leave them, without control sequences.

use carma_format::printable;

/// The lines of a log.
pub(super) fn plain_lines(log: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(log).lines().map(plain).collect()
}

/// A line as a terminal would leave it, without overwritten text and colours.
fn plain(line: &str) -> String {
    let left = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    printable(&without_sequences(left).replace('\t', "    "))
}

/// A text without the sequences that steer a terminal.
fn without_sequences(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if letter != '\u{1b}' {
            kept.push(letter);
            continue;
        }
        match rest.next() {
            // Colours and movements end with a letter.
            Some('[') => drop(rest.find(|end| matches!(end, '\u{40}'..='\u{7e}'))),
            // Titles and links end with a bell, or with an escape and a letter.
            Some(']') if rest.find(|end| matches!(end, '\u{7}' | '\u{1b}')) == Some('\u{1b}') => drop(rest.next()),
            // The others have one letter.
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_a_terminal_would_leave_them() {
        let log =
            b"\x1b[1;31mred\x1b[0m\tend\r\n 10 %\r 20 %\r\nlink \x1b]8;;http://a\x1b\\b\x1b]0;title\x07c\n\x1bcreset \xff\x08\ncut \x1b[3";
        assert_eq!(plain_lines(log), ["red    end", " 20 %", "link bc", "reset \u{fffd}\u{fffd}", "cut "]);
    }
}
