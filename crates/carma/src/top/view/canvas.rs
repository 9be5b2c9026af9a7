//! Texts on the screen: cut to fit, and free of control sequences.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::appearance::{Appearance, FAINT, SELECTED, STRONG};
use carma_format::printable;

/// A row that is written from left to right.
pub(super) struct Row<'a> {
    buffer: &'a mut Buffer,
    appearance: Appearance,
    x: u16,
    y: u16,
    end: u16,
}

impl<'a> Row<'a> {
    /// The row of an area at this offset; unset if there is none.
    pub(super) fn new(area: Rect, down: usize, appearance: Appearance, buffer: &'a mut Buffer) -> Option<Self> {
        let down = u16::try_from(down).ok().filter(|down| *down < area.height)?;
        Some(Self { buffer, appearance, x: area.x, y: area.y + down, end: area.right() })
    }

    /// Cells that are left.
    pub(super) const fn left(&self) -> usize {
        self.end.saturating_sub(self.x) as usize
    }

    /// Leaves out some cells.
    pub(super) fn skip(&mut self, cells: usize) -> &mut Self {
        self.x = self.end.min(self.x.saturating_add(u16::try_from(cells).unwrap_or(u16::MAX)));
        self
    }

    /// Writes a text in its full length.
    pub(super) fn text(&mut self, text: &str, style: Style) -> &mut Self {
        let before = self.x;
        let width = self.write(text, self.left(), style);
        self.x = before + width;
        self
    }

    /// Writes a text in this many cells, left-aligned.
    pub(super) fn cell(&mut self, text: &str, width: usize, style: Style) -> &mut Self {
        let width = width.min(self.left());
        self.write(text, width, style);
        self.skip(width)
    }

    /// Writes a number in this many cells, right-aligned.
    pub(super) fn number(&mut self, text: &str, width: usize, style: Style) -> &mut Self {
        let free = width.saturating_sub(text.chars().count());
        self.skip(free).cell(text, width - free, style)
    }

    /// Writes a text at the end of the row, if there is room.
    pub(super) fn at_end(&mut self, text: &str, style: Style) {
        let width = Span::raw(text).width();
        if let Some(free) = self.left().checked_sub(width + 1) {
            self.skip(free + 1).text(text, style);
        }
    }

    /// Writes one letter.
    pub(super) fn letter(&mut self, letter: char, style: Style) -> &mut Self {
        if self.left() > 0
            && let Some(cell) = self.buffer.cell_mut((self.x, self.y))
        {
            cell.set_char(letter).set_style(style);
        }
        self.skip(1)
    }

    /// Fills the remaining width.
    pub(super) fn fill(&mut self, symbol: &str, style: Style) {
        for x in self.x..self.end {
            self.buffer.cell_mut((x, self.y)).map(|cell| cell.set_symbol(symbol).set_style(style));
        }
        self.x = self.end;
    }

    fn write(&mut self, text: &str, width: usize, style: Style) -> u16 {
        // Nearly all texts are plain and need no copy.
        let text = if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) { Cow::Borrowed(text) } else { Cow::Owned(printable(text)) };
        let fits = Span::raw(text.as_ref()).width() <= width;
        let (mut end, _) = self.buffer.set_stringn(self.x, self.y, text, if fits { width } else { width.saturating_sub(1) }, style);
        if !fits && width > 0 {
            let cut = self.appearance.glyphs().cut;
            self.buffer.cell_mut((end, self.y)).map(|cell| cell.set_char(cut).set_style(style));
            end += 1;
        }
        end - self.x
    }
}

/// A line with a title, above a part of the screen.
pub(super) fn title(area: Rect, name: &str, more: &str, focused: bool, appearance: Appearance, buffer: &mut Buffer) {
    let rule = appearance.glyphs().rule;
    let Some(mut row) = Row::new(area, 0, appearance, buffer) else { return };
    let style = if focused { STRONG.patch(SELECTED) } else { STRONG };
    row.text(rule, FAINT).text(&format!(" {name} "), style).text(more, Style::new());
    row.text(if more.is_empty() { "" } else { " " }, Style::new()).fill(rule, FAINT);
}

/// The first place to show, so that the selected one is visible.
pub(super) fn first_in_sight(selected: usize, rows: usize, all: usize) -> usize {
    selected.saturating_sub(rows / 2).min(all.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_by_the_cells_they_take() {
        let area = Rect::new(0, 0, 12, 1);
        let mut buffer = Buffer::empty(area);
        let appearance = Appearance { colour: false, unicode: true };
        let mut row = Row::new(area, 0, appearance, &mut buffer).unwrap();
        row.cell("日本語の名", 6, Style::new()).letter('|', Style::new()).number("7", 3, Style::new()).text("a\x1b[2J", Style::new());
        assert_eq!(buffer, Buffer::with_lines(["日本… |  7a…"]));
    }

    #[test]
    fn the_selection_is_visible() {
        assert_eq!([(0, 5, 20), (10, 5, 20), (19, 5, 20), (2, 5, 3)].map(|(at, rows, all)| first_in_sight(at, rows, all)), [0, 8, 15, 0]);
    }
}
