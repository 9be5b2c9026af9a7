//! Recent events: the latest first, recoveries and failures in their colours.

use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::model::{Model, Pane};
use super::appearance::{Appearance, FAINT, SELECTED};
use super::canvas::{Row, first_in_sight, title};
use crate::manager::moment;

pub(super) fn draw(model: &Model, zone: &TimeZone, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let events = &model.events;
    let focused = model.focus == Pane::Events;
    let kinds = events.hide_routine.then(|| "recoveries and failures".to_owned());
    let newer = (events.place() > 0).then(|| format!("{} newer, Home follows again", events.place()));
    let more = kinds.into_iter().chain(newer).collect::<Vec<_>>().join(" | ");
    title(area, "Events", &more, focused, appearance, buffer);
    let rows = usize::from(area.height).saturating_sub(1);
    let first = first_in_sight(events.place(), rows, events.listed().count());
    for (place, event) in events.listed().enumerate().skip(first).take(rows) {
        let Some(mut row) = Row::new(area, 1 + place - first, appearance, buffer) else { return };
        let style = appearance.severity(event.severity);
        let at = moment(event.at, zone);
        let clock = at.split_once(' ').map_or(at.as_str(), |(_, clock)| clock);
        row.skip(1).text(clock, if focused && place == events.place() { SELECTED } else { FAINT }).skip(1);
        if let Some(job) = event.job {
            row.text(&format!("{job} "), style);
        }
        row.text(&event.text, style);
    }
}
