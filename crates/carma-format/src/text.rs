//! Text on terminals: what is safe to print, cut and wrapped by display width.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
    text.replace(controls, "\u{fffd}")
}

/// The text, or its beginning with an ellipsis if it is wider than `most` columns.
pub fn shortened(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used < most
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// A text in lines of at most 80 columns.
pub fn wrapped(text: &str) -> String {
    wrapped_to(text, WIDTH)
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
    fn wide_characters_take_two_columns() {
        assert_eq!([shortened("日本語", 6), shortened("日本語", 5), shortened("abcdef", 4)], ["日本語", "日本…", "abc…"]);
    }
}
