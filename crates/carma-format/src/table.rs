//! Tables on terminals, in 80 columns.

use std::io::{self, Write};

use crate::text::{WIDTH, printable, shortened, width};

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    /// Columns of the terminal at most.
    most: usize,
    right: bool,
}

/// A column of words.
pub const fn left(title: &'static str, most: usize) -> Column {
    Column { title, most, right: false }
}

/// A column of numbers.
pub const fn right(title: &'static str, most: usize) -> Column {
    Column { title, most, right: true }
}

/// Writes rows under titles. Each column is as wide as its widest cell; the last one takes the rest of the line.
pub fn write_table<const N: usize>(columns: [Column; N], rows: &[[String; N]], output: &mut impl Write) -> io::Result<()> {
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
}
