//! The model as a picture. It has no state: the same model gives the same picture.
//!
//! ```text
//!  head      which manager, how many GPUs, its clock; problems; pools
//!  GPUs      memory by job, utilisation over time
//!  jobs      and a line about the selection
//!  events
//!  foot      keys, or the result of the last action
//! ```

mod appearance;
mod canvas;
mod events;
mod gpu_text;
mod gpus;
mod jobs;
mod memory;
mod panel;
#[cfg(test)]
mod pictures;
mod pools;
#[cfg(test)]
mod tests;

pub(crate) use appearance::Appearance;
pub(super) use pools::text as pools_text;

use carma_manager::api::Status;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::model::{Model, Pane, Panel, Prompt};
use super::wrap::wrapped;
use appearance::{FAINT, STRONG};
use canvas::Row;

use crate::manager::moment;
use carma_format::{count, wrapped_to};

/// Less than this cannot be read.
const SMALLEST: (u16, u16) = (40, 10);
/// Most rows of the foot.
const MOST_NOTICE: usize = 3;

/// Draws everything.
pub(super) fn draw(model: &Model, zone: &TimeZone, appearance: Appearance, buffer: &mut Buffer) {
    let whole = buffer.area;
    if whole.width < SMALLEST.0 || whole.height < SMALLEST.1 {
        if let Some(mut row) = Row::new(whole, 0, appearance, buffer) {
            row.text("too small: q leaves", STRONG);
        }
        return;
    }
    let (_, rest) = cut(whole, head(model, zone, whole, appearance, buffer));
    let notice = notice_lines(model, whole.width.into());
    let (body, foot) = cut(rest, rest.height - notice.len().max(1) as u16);
    match &model.panel {
        Some(panel) => panel::draw(panel, body, appearance, buffer),
        None => lists(model, zone, body, appearance, buffer),
    }
    draw_foot(model, &notice, foot, appearance, buffer);
    if let Some(Prompt::Confirm { question, .. }) = &model.prompt {
        panel::ask(question, whole, appearance, buffer);
    }
}

/// The first rows of an area, and the rest.
const fn cut(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = if rows < area.height { rows } else { area.height };
    (Rect { height: rows, ..area }, Rect { y: area.y + rows, height: area.height - rows, ..area })
}

fn lists(model: &Model, zone: &TimeZone, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let gpus = model.answers.as_ref().map_or(0, |answers| answers.gpus.len());
    // The focused list may have more.
    let (for_gpus, for_events) = match model.focus {
        Pane::Gpus => (height * 2 / 3, 3),
        Pane::Jobs => (height / 2, 4 + height.saturating_sub(22) / 4),
        Pane::Events => (height * 2 / 5, height * 2 / 5),
    };
    let (top, rest) = cut(area, gpus::rows_wanted(gpus, for_gpus) as u16);
    let (middle, bottom) = cut(rest, rest.height.saturating_sub(for_events as u16));
    let (list, line) = cut(middle, middle.height.saturating_sub(1));
    gpus::draw(model, top, appearance, buffer);
    jobs::draw(model, list, appearance, buffer);
    events::draw(model, zone, bottom, appearance, buffer);
    if let (Some(mut row), Some(text)) = (Row::new(line, 0, appearance, buffer), about(model)) {
        row.skip(1).text(&text, FAINT);
    }
}

/// Details of the selection.
fn about(model: &Model) -> Option<String> {
    let gpus = &model.answers.as_ref()?.gpus;
    match model.focus {
        Pane::Gpus => gpus.get(model.gpu).map(gpu_text::about),
        Pane::Jobs => model.jobs.selected().map(|job| jobs::about(job, gpus)),
        Pane::Events => None,
    }
}

/// Draws the head, and returns its number of rows.
fn head(model: &Model, zone: &TimeZone, area: Rect, appearance: Appearance, buffer: &mut Buffer) -> u16 {
    if let Some(mut row) = Row::new(area, 0, appearance, buffer) {
        row.skip(1).text("carma", STRONG).skip(1);
        if let Some(answers) = &model.answers {
            let clock = moment(answers.status.now, zone);
            row.text(&manager_text(&answers.status), Style::new()).at_end(&clock, FAINT);
        } else {
            row.text(&model.address, FAINT);
        }
    }
    let problems = model.answers.iter().flat_map(|answers| &answers.status.problems).cloned();
    let all: Vec<String> = model.absence().into_iter().chain(problems).collect();
    let text = wrapped_to(&carma_format::printable(&all.join("; ")), usize::from(area.width).saturating_sub(4));
    let lines: Vec<&str> = text.lines().take(2).filter(|line| !line.is_empty()).collect();
    for (place, line) in lines.iter().enumerate() {
        if let Some(mut row) = Row::new(area, 1 + place, appearance, buffer) {
            row.skip(1).text(if place == 0 { "! " } else { "  " }, appearance.alarm()).text(line, appearance.alarm());
        }
    }
    let pools = model.answers.as_ref().and_then(|answers| pools::text(&answers.pools));
    let below = 1 + lines.len();
    if let (Some(text), Some(mut row)) = (&pools, Row::new(area, below, appearance, buffer)) {
        row.skip(1).text(text, appearance.notable());
    }
    (below + usize::from(pools.is_some())) as u16
}

/// A short text about a manager.
fn manager_text(status: &Status) -> String {
    let speed = if status.speed > 1.0 { format!(" ({}x)", status.speed) } else { String::new() };
    let parts = [
        Some(count(status.gpus as usize, "GPU")),
        status.emulated.then(|| format!("emulated{speed}")),
        Some(format!("policy {}", status.policy)),
        status.observes.then(|| "only observes".to_owned()),
        status.draining.then(|| "draining".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The result of the last action, wrapped for the foot.
fn notice_lines(model: &Model, width: usize) -> Vec<String> {
    model.notice().into_iter().flat_map(|notice| wrapped(notice, width.saturating_sub(2))).take(MOST_NOTICE).collect()
}

/// Draws the recent result of an action, or keys.
fn draw_foot(model: &Model, notice: &[String], area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    for (down, line) in notice.iter().enumerate() {
        if let Some(mut row) = Row::new(area, down, appearance, buffer) {
            row.skip(1).text(line, appearance.notable());
        }
    }
    if !notice.is_empty() {
        return;
    }
    let Some(mut row) = Row::new(area, 0, appearance, buffer) else { return };
    row.skip(1);
    let select = appearance.glyphs().up_down;
    let keys: &[(&str, &str)] = match (&model.prompt, &model.panel) {
        (Some(Prompt::Filter), _) => &[("Enter", "keep"), ("Esc", "all jobs"), ("user: state: gpu:", "narrow it down")],
        (_, Some(Panel::Log(_))) => &[("Esc", "back"), (select, "scroll"), ("End", "follow"), ("e", "other stream"), ("Enter", "job")],
        (_, Some(Panel::Job(_))) => &[("Esc", "back"), (select, "scroll"), ("l", "log")],
        (_, Some(Panel::Help)) => &[("Esc", "back")],
        _ => &[
            ("?", "keys"),
            ("Tab", "pane"),
            ("Enter", "show"),
            ("l", "log"),
            ("c", "cancel"),
            ("h", "hold"),
            ("/", "filter"),
            ("q", "leave"),
        ],
    };
    for (key, meaning) in keys {
        row.text(key, STRONG).skip(1).text(meaning, FAINT).skip(2);
    }
}
