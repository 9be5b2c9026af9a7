//! Panels over the lists: details of a job, a log, help, a question.

use carma_manager::api::LogStream;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::model::Panel;
use super::appearance::{Appearance, FAINT, STRONG};
use super::canvas::{Row, title};

/// Key bindings.
const HELP: [(&str, &str); 19] = [
    ("up, down, j, k", "select the next or the one before; scroll"),
    ("PgUp, PgDn, space", "a page at a time"),
    ("Home, End, g, G", "the first, the last; End follows a log again, Home events"),
    ("Tab", "to the next pane: GPUs, jobs, events"),
    ("Enter", "all about a job: estimate, peak, attempts, why it waits;"),
    ("", "on a GPU: list its jobs"),
    ("l", "follow the log of a job; e there: its standard error"),
    ("c", "cancel a job"),
    ("h, r", "hold a waiting job; release a held one"),
    ("R", "requeue a running job: it stops, and waits again"),
    ("/", "filter: words in names, or user:ada state:run gpu:3"),
    ("s", "sort by time, memory, user, name, or as they are queued"),
    ("u", "list only my jobs, or all"),
    ("e", "list only recoveries and failures among events, or all"),
    ("Esc", "back; list all jobs"),
    ("q, Ctrl-C; Ctrl-Z", "leave; stop until the shell goes on with it (fg)"),
    ("", ""),
    ("memory bar", "letters and colours are jobs, as in the list;"),
    ("", "shaded: reserved, unused; dense: other processes; dots: free"),
];

pub(super) fn draw(panel: &Panel, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let rows = usize::from(area.height).saturating_sub(1);
    match panel {
        Panel::Help => {
            title(area, "Keys", "", true, appearance, buffer);
            for (down, (keys, meaning)) in HELP.iter().enumerate() {
                let Some(mut row) = Row::new(area, down + 1, appearance, buffer) else { return };
                row.skip(1).cell(keys, 18, STRONG).skip(1).text(meaning, Style::new());
            }
        }
        Panel::Job(panel) => {
            let text = panel.wrapped(area.width.into());
            let first = panel.above.min(text.len().saturating_sub(rows));
            let more = position(first, rows, text.len());
            title(area, &format!("Job {}", panel.name), &more, true, appearance, buffer);
            lines(&text[first..], area, appearance, buffer);
        }
        Panel::Log(panel) => {
            let first = panel.lines.len().saturating_sub(rows.saturating_add(panel.below));
            let stream = match panel.stream {
                LogStream::Stdout | LogStream::Both => "",
                LogStream::Stderr => " (standard error)",
            };
            let more = match (&panel.problem, panel.below) {
                (Some(why), _) => why.clone(),
                (None, 0) => "following".to_owned(),
                _ => position(first, rows, panel.lines.len()) + ", End follows again",
            };
            title(area, &format!("Log of job {}{stream}", panel.name), &more, true, appearance, buffer);
            lines(&panel.lines[first..], area, appearance, buffer);
            if panel.lines.is_empty()
                && let Some(mut row) = Row::new(area, 1, appearance, buffer)
            {
                row.text(" nothing is printed yet", FAINT);
            }
        }
    }
}

fn position(first: usize, rows: usize, all: usize) -> String {
    if all <= rows { String::new() } else { format!("lines {}-{} of {all}", first + 1, (first + rows).min(all)) }
}

fn lines(lines: &[String], area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    for (down, line) in lines.iter().enumerate() {
        let Some(mut row) = Row::new(area, down + 1, appearance, buffer) else { return };
        row.text(line, Style::new());
    }
}

/// A question in the middle of the screen.
pub(super) fn ask(question: &str, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let width = (question.chars().count().max(26) as u16 + 4).min(area.width);
    let height = 5.min(area.height);
    let area = Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    let glyphs = appearance.glyphs();
    let [above_left, above_right, below_left, below_right] = glyphs.corners;
    for down in 0..height {
        let (left, middle, right) = match down {
            0 => (above_left, glyphs.rule, above_right),
            _ if down + 1 == height => (below_left, glyphs.rule, below_right),
            _ => (glyphs.side, " ", glyphs.side),
        };
        if let Some(mut row) = Row::new(area, down.into(), appearance, buffer) {
            row.letter(left, Style::new());
            row.text(&middle.repeat(usize::from(width) - 2), Style::new());
            row.letter(right, Style::new());
        }
    }
    let inner = Rect { x: area.x + 2, width: width.saturating_sub(4), ..area };
    if let Some(mut row) = Row::new(inner, 1, appearance, buffer) {
        row.text(question, appearance.notable());
    }
    if let Some(mut row) = Row::new(inner, 3, appearance, buffer) {
        row.text("y", STRONG).text(": yes   ", Style::new()).text("any other key", STRONG).text(": no", Style::new());
    }
}
