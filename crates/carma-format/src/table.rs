//! Tables on terminals, in 80 columns. In plain text, a table is a block of `title: value` lines for each row.

use std::io::{self, Write};

use crate::terminal::Terminal;
use crate::text::{WIDTH, printable, shortened, width};

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    /// The title in plain text, if it is not the same.
    spoken: Option<&'static str>,
    /// Columns of the terminal at most.
    most: usize,
    right: bool,
}

impl Column {
    /// With a title to be read aloud: the other is short, as its column is narrow.
    #[must_use]
    pub const fn spoken(self, title: &'static str) -> Self {
        Self { spoken: Some(title), ..self }
    }

    fn spoken_title(&self) -> String {
        self.spoken.map_or_else(|| self.title.split(' ').map(spoken_word).collect::<Vec<_>>().join(" "), str::to_owned)
    }
}

/// A column of words.
pub const fn left(title: &'static str, most: usize) -> Column {
    Column { title, spoken: None, most, right: false }
}

/// A column of numbers.
pub const fn right(title: &'static str, most: usize) -> Column {
    Column { title, spoken: None, most, right: true }
}

/// Writes rows under titles. Each column is as wide as its widest cell; the last one takes the rest of the line.
pub fn write_table<const N: usize>(columns: [Column; N], rows: &[[String; N]], output: &mut impl Write) -> io::Result<()> {
    if Terminal::current().plain {
        return write_blocks(columns, rows, output);
    }
    let cell = |column: Column, text: &str| shortened(&printable(text), column.most);
    let widest = |place: usize, column: Column| {
        let cells = rows.iter().map(|row| width(&cell(column, &row[place])));
        cells.chain([width(column.title)]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(place, column)| widest(place, *column)).collect();
    let mut write = |texts: [&str; N]| {
        let mut line = String::new();
        for (place, ((column, text), widest)) in columns.into_iter().zip(texts).zip(&widths).enumerate() {
            let text = cell(column, text);
            let padding = " ".repeat(widest.saturating_sub(width(&text)));
            let (before, after) = if column.right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            let gap = if place > 0 { " " } else { "" };
            line.extend([gap, before, text.as_str(), after]);
        }
        writeln!(output, "{}", shortened(line.trim_end(), WIDTH))
    };
    write(columns.map(|column| column.title))?;
    rows.iter().try_for_each(|row| write(row.each_ref().map(String::as_str)))
}

/// Writes a block of plain text: a line with a name, and a line for each fact that is known.
pub fn write_facts<'a>(name: &str, facts: impl IntoIterator<Item = (&'a str, String)>, output: &mut impl Write) -> io::Result<()> {
    writeln!(output, "\n{}", printable(name))?;
    let known = |(_, value): &(&str, String)| !matches!(value.trim(), "" | "-");
    facts.into_iter().filter(known).try_for_each(|(label, value)| writeln!(output, "{label}: {}", printable(value.trim())))
}

/// Writes each row as a block of lines, without empty cells. A first column without a title is the name of the block.
fn write_blocks<const N: usize>(columns: [Column; N], rows: &[[String; N]], output: &mut impl Write) -> io::Result<()> {
    let titles = columns.map(|column| column.spoken_title());
    for (place, row) in rows.iter().enumerate() {
        if place > 0 {
            writeln!(output)?;
        }
        for (title, cell) in titles.iter().zip(row) {
            match printable(cell.trim()).as_str() {
                "" | "-" => {}
                name if title.is_empty() => writeln!(output, "{name}")?,
                value => writeln!(output, "{title}: {value}")?,
            }
        }
    }
    Ok(())
}

/// A word of a title as it is read aloud: small letters are words, and capitals are spelt.
fn spoken_word(word: &str) -> String {
    match word {
        "GPUS" => "GPUs".to_owned(),
        "JCT" => "completion time".to_owned(),
        "OOM" => "out-of-memory attempts".to_owned(),
        "p95" | "P95" => "95th percentile".to_owned(),
        "CO2" | "GPU" | "ID" | "MIG" | "SMACT" | "SMOCC" | "UUID" | "W" => word.to_owned(),
        _ if word.chars().any(char::is_lowercase) => word.to_owned(),
        _ => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn wide_characters_do_not_shift_columns() {
        let rows = [["日本", "1"], ["abcd", "2"]].map(|row| row.map(str::to_owned));
        let mut table = Vec::new();
        write_table([left("NAME", 9), right("N", 3)], &rows, &mut table).unwrap();
        assert_eq!(String::from_utf8(table).unwrap(), "NAME N\n日本 1\nabcd 2\n");
    }

    #[test]
    fn a_row_of_plain_text_is_a_block_of_lines() {
        let rows = [["1", "long names are not cut", "-", "4.0G"], ["12", "a", "", "-"]].map(|row| row.map(str::to_owned));
        let columns = [right("ID", 9), left("NAME", 8), left("", 5), right("RESVD", 5).spoken("reserved on each GPU")];
        let mut blocks = Vec::new();
        Terminal { plain: true, ..Terminal::UNKNOWN }.replaced(|| write_table(columns, &rows, &mut blocks)).unwrap();
        insta::assert_snapshot!(String::from_utf8(blocks).unwrap(), @r"
        ID: 1
        name: long names are not cut
        reserved on each GPU: 4.0G

        ID: 12
        name: a
        ");
    }

    #[test]
    fn a_locale_without_unicode_gets_another_mark_of_a_cut() {
        let rows = [["Größe is cut".to_owned()]];
        let mut table = Vec::new();
        Terminal { unicode: false, ..Terminal::UNKNOWN }.replaced(|| write_table([left("NAME", 8)], &rows, &mut table)).unwrap();
        assert_eq!(String::from_utf8(table).unwrap(), "NAME\nGröße i~\n", "names stay as they are");
    }
}
