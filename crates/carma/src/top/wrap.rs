//! Long lines on several rows.

/// Narrower terminals count as this wide: there would be more rows than words.
const NARROWEST: usize = 20;

/// A line in rows of at most this many columns, broken between words if possible. Columns stay as they are; continued rows are indented.
pub(super) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let width = width.max(NARROWEST);
    let indent = " ".repeat((line.len() - line.trim_start().len() + 2).min(width / 2));
    carma_format::wrapped_line(line, width, &indent)
}

#[cfg(test)]
mod tests {
    use ratatui::text::Span;

    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrapped("  memory    20.0 GiB", 20), ["  memory    20.0 GiB"]);
        assert_eq!(wrapped("  memory    20.0 GiB of 40.0 GiB", 20), ["  memory    20.0 GiB", "    of 40.0 GiB"]);
        assert_eq!(wrapped("job 21 is too large: no server has it", 20), ["job 21 is too large:", "  no server has it"]);
        assert_eq!(wrapped(&"x".repeat(43), 20), ["x".repeat(18), format!("  {}", "x".repeat(18)), "  xxxxxxx".to_owned()]);
        assert_eq!(wrapped(&"日".repeat(12), 20), ["日".repeat(9), "  日日日".to_owned()]);
        assert_eq!(wrapped("", 20), [""]);
        for (line, width) in [(" ".repeat(99), 0), (format!("{}a b", " ".repeat(60)), 21), ("日 ".repeat(50), 1)] {
            assert!(wrapped(&line, width).iter().all(|row| Span::raw(row).width() <= width.max(NARROWEST)), "{line:?}");
        }
    }
}
