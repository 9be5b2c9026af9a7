//! Long lines on several rows.

use ratatui::text::Span;

/// Narrower than this nothing is wrapped: there would be more rows than words.
const NARROWEST: usize = 20;

/// A line in rows of at most so many cells, broken between words where it can be. Columns stay as they are, and what is broken off is set in.
pub(super) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let width = width.max(NARROWEST);
    let inset = " ".repeat((line.len() - line.trim_start().len() + 2).min(width / 2));
    let (mut rows, mut rest) = (Vec::new(), line.to_owned());
    while let Some(over) = beyond(&rest, width) {
        let space = rest[..over].rfind(' ').filter(|space| *space >= inset.len());
        let end = if rest[over..].starts_with(' ') { over } else { space.unwrap_or(over) };
        let broken_off = format!("{inset}{}", rest[end..].trim_start());
        rest.truncate(end);
        rows.push(std::mem::replace(&mut rest, broken_off));
    }
    rows.push(rest);
    rows
}

/// Where a text goes beyond so many cells, if it does.
fn beyond(text: &str, width: usize) -> Option<usize> {
    let mut cells = 0;
    let over = |(_, letter): &(usize, char)| {
        cells += Span::raw(letter.encode_utf8(&mut [0; 4]) as &str).width();
        cells > width
    };
    text.char_indices().find(over).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrapped("  memory    20.0 GiB", 20), ["  memory    20.0 GiB"]);
        assert_eq!(wrapped("  memory    20.0 GiB of 40.0 GiB", 20), ["  memory    20.0 GiB", "    of 40.0 GiB"]);
        assert_eq!(wrapped("job 21 is too large: no server has it", 20), ["job 21 is too large:", "  no server has it"]);
        assert_eq!(wrapped(&"x".repeat(43), 20), ["x".repeat(20), format!("  {}", "x".repeat(18)), "  xxxxx".to_owned()]);
        assert_eq!(wrapped(&"日".repeat(12), 20), ["日".repeat(10), "  日日".to_owned()]);
        assert_eq!(wrapped("", 20), [""]);
        for (line, width) in [(" ".repeat(99), 0), (format!("{}a b", " ".repeat(60)), 21), ("日 ".repeat(50), 1)] {
            assert!(wrapped(&line, width).iter().all(|row| Span::raw(row).width() <= width.max(NARROWEST)), "{line:?}");
        }
    }
}
