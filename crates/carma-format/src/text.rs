//! Text on terminals: what is safe to print, cut and wrapped by display width.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::Terminal;

/// Columns of a terminal.
pub const WIDTH: usize = 80;

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text without characters that control a terminal or change the direction of text.
pub fn printable(text: &str) -> String {
    let controls = |letter: char| {
        letter.is_control() || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let replaced = Terminal::current().glyphs().replaced;
    text.replace(controls, replaced.encode_utf8(&mut [0; 4]))
}

/// The text, or its beginning and a mark if it is wider than `most` columns.
pub fn shortened(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used < most
    };
    text.chars().take_while(fits).chain([Terminal::current().glyphs().cut]).collect()
}

/// A line, cut after 80 columns. Plain text is not cut.
pub fn fitted(line: &str) -> String {
    if Terminal::current().plain { line.to_owned() } else { shortened(line, WIDTH) }
}

/// A label and its value, which begins at a column of the line. In plain text, a colon is between them.
pub fn labelled(label: &str, column: usize, value: &str) -> String {
    let gap = column.saturating_sub(label.chars().count()).max(1);
    if Terminal::current().plain { format!("{}: {value}", label.trim_start()) } else { format!("{label}{:gap$}{value}", "") }
}

/// A value at the right of this many columns. Plain text has no columns.
pub fn aligned(value: &str, columns: usize) -> String {
    if Terminal::current().plain { value.to_owned() } else { format!("{value:>columns$}") }
}

/// A text in lines of at most 80 columns. Plain text stays in one line.
pub fn wrapped(text: &str) -> String {
    wrapped_to(text, if Terminal::current().plain { usize::MAX } else { WIDTH })
}

/// A text in lines of at most this many columns; white space separates words. Longer words are not broken.
pub fn wrapped_to(text: &str, width: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    textwrap::fill(&words.join(" "), plain(width).break_words(false))
}

/// Options that break at spaces only, each line as full as possible.
pub(crate) fn plain<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// A line in rows of at most `width` columns. Runs of spaces stay; continued rows are indented, and words that are too long are broken.
pub fn wrapped_line(line: &str, width: usize, indent: &str) -> Vec<String> {
    textwrap::wrap(line, plain(width).subsequent_indent(indent)).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\x1b[2J\u{202e}b\né"), "a\u{fffd}[2J\u{fffd}b\u{fffd}é");
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(40));
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [79, 79, 39]);
        assert_eq!(wrapped_to("a  very-long-word\nb", 6), "a\nvery-long-word\nb");
    }

    #[test]
    fn labels_have_a_column_or_a_colon() {
        assert_eq!([labelled("  energy", 12, "9 Wh"), labelled("a long label", 8, "7")], ["  energy    9 Wh", "a long label 7"]);
        let plain = Terminal { plain: true, ..Terminal::UNKNOWN };
        assert_eq!(plain.replaced(|| labelled("  energy", 12, &aligned("9 Wh", 9))), "energy: 9 Wh");
        assert_eq!(plain.replaced(|| [wrapped(&"word ".repeat(40)), fitted(&"x".repeat(99))].map(|line| line.len())), [199, 99]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!([shortened("日本語", 6), shortened("日本語", 5), shortened("abcdef", 4)], ["日本語", "日本…", "abc…"]);
    }
}
