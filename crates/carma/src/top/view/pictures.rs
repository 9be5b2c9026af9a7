//! The screen as text, for tests.

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Style};

use super::super::model::Model;
use super::{Appearance, draw};

pub(super) const PLAIN: Appearance = Appearance { colour: false, unicode: true };
pub(super) const COLOURED: Appearance = Appearance { colour: true, unicode: true };

pub(super) fn drawn(model: &Model, width: u16, height: u16, appearance: Appearance) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, &TimeZone::UTC, appearance, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

pub(super) fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    buffer.content.chunks(width).map(|cells| line(cells).trim_end().to_owned() + "\n").collect()
}

pub(super) fn picture(model: &Model, width: u16, height: u16) -> String {
    text(&drawn(model, width, height, PLAIN))
}

/// Each run of cells with the same style.
pub(super) fn styles(buffer: &Buffer) -> String {
    let mut runs: Vec<(Style, String)> = Vec::new();
    for cells in buffer.content.chunks(usize::from(buffer.area.width)) {
        for run in cells.chunk_by(|one, next| one.style() == next.style()) {
            let text: String = run.iter().map(ratatui::buffer::Cell::symbol).collect();
            if !text.trim().is_empty() || run[0].bg != Color::Reset {
                runs.push((run[0].style(), text.trim_end().to_owned()));
            }
        }
    }
    let line = |(style, text): &(Style, String)| {
        let colour =
            |name: &str, colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset).map(|colour| format!("{name} {colour}"));
        let mut attributes: Vec<String> = [colour("fg", style.fg), colour("bg", style.bg)].into_iter().flatten().collect();
        if !style.add_modifier.is_empty() {
            attributes.push(format!("{:?}", style.add_modifier));
        }
        format!("{:<32} {text}\n", attributes.join(", "))
    };
    runs.iter().map(line).collect()
}
