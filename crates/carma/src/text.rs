//! Texts and tables for terminals: nothing in them steers one, and they fit 80 columns.

use std::io::{self, Write};

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// A text without what could steer a terminal or turn its order around.
pub(crate) fn printable(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control() || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.replace(steers, "\u{fffd}")
}

/// The beginning of a text, where it is longer than so many letters.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width { text.to_owned() } else { text.chars().take(width.saturating_sub(1)).chain(['…']).collect() }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    /// At most so many letters.
    most: usize,
    right: bool,
}

/// A column of words.
pub(crate) const fn left(title: &'static str, most: usize) -> Column {
    Column { title, most, right: false }
}

/// A column of numbers.
pub(crate) const fn right(title: &'static str, most: usize) -> Column {
    Column { title, most, right: true }
}

/// Writes rows under titles, each column as wide as it must be; the last one has what is left.
pub(crate) fn write_table<const N: usize>(columns: [Column; N], rows: &[[String; N]], output: &mut impl Write) -> io::Result<()> {
    let cell = |column: Column, text: &str| shortened(&printable(text), column.most);
    let width = |place: usize, column: Column| {
        let cells = rows.iter().map(|row| cell(column, &row[place]).chars().count());
        cells.chain([column.title.len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(place, column)| width(place, *column)).collect();
    let mut write = |texts: [&str; N]| {
        let mut line = String::new();
        for ((column, text), width) in columns.into_iter().zip(texts).zip(&widths) {
            let text = cell(column, text);
            let padded = if column.right { format!("{text:>width$}") } else { format!("{text:<width$}") };
            line = if line.is_empty() { padded } else { format!("{line} {padded}") };
        }
        writeln!(output, "{}", shortened(line.trim_end(), WIDTH))
    };
    write(columns.map(|column| column.title))?;
    rows.iter().try_for_each(|row| write(row.each_ref().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(printable("a\x1b[2J\u{202e}b\né"), "a\u{fffd}[2J\u{fffd}b\u{fffd}é");
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_lines_end_in_time() {
        let rows = [["1", "long names are cut", "why"], ["12", "a", &"because ".repeat(20)]].map(|row| row.map(str::to_owned));
        let mut table = Vec::new();
        write_table([right("ID", 9), left("NAME", 8), left("WHY", 200)], &rows, &mut table).unwrap();
        insta::assert_snapshot!(String::from_utf8(table).unwrap(), @r"
        ID NAME     WHY
         1 long na… why
        12 a        because because because because because because because because bec…
        ");
    }
}
