//! GPUs: their memory by job, and their utilisation over time. With less room, each has fewer lines.

use carma_core::Metric;
use carma_manager::api::{GpuDetail, GpuTenant};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::model::{Model, Pane};
use super::appearance::{Appearance, FAINT, SELECTED, STRONG};
use super::canvas::{Row, first_in_sight, title};
use super::gpu_text::{memory_text, name, state_text, temperature, tenant_usage};
use super::memory::{Part, cells};
use carma_format::{printable, shortened};

/// Widths of the parts of a GPU in a single row.
const MEMORY_TEXT: usize = 9;
/// The only chart whose numbers have a unit.
const POWER: &str = "power";
/// From this width on, a row has room for all charts.
const WIDE: usize = 120;

/// Lines per GPU in this room.
const fn lines_each(gpus: usize, room: usize) -> usize {
    match room.checked_div(gpus) {
        Some(3..) => 3,
        Some(2) => 2,
        _ => 1,
    }
}

/// Rows of all GPUs, with their title, in this room.
pub(super) fn rows_wanted(gpus: usize, room: usize) -> usize {
    let each = lines_each(gpus, room.saturating_sub(1));
    let heading = usize::from(each == 1);
    (1 + heading + gpus.max(1) * each).min(room)
}

pub(super) fn draw(model: &Model, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let gpus = model.answers.as_ref().map_or(&[][..], |answers| &answers.gpus);
    let focused = model.focus == Pane::Gpus;
    let rows = usize::from(area.height).saturating_sub(1);
    let each = lines_each(gpus.len(), rows);
    let heading = usize::from(each == 1);
    let shown = (rows - heading.min(rows)) / each;
    let first = first_in_sight(model.gpu, shown, gpus.len());
    let more = if shown < gpus.len() { format!("{}-{} of {}", first + 1, first + shown, gpus.len()) } else { String::new() };
    title(area, "GPUs", &more, focused, appearance, buffer);
    if gpus.is_empty()
        && let Some(mut row) = Row::new(area, 1, appearance, buffer)
    {
        row.text(if model.answers.is_some() { " no GPUs are managed" } else { " asking the manager" }, FAINT);
        return;
    }
    let widest = gpus.iter().map(|gpu| name(gpu).len()).max().unwrap_or_default();
    let metrics = Metric::shown(|metric| gpus.iter().any(|gpu| gpu.utilisation[metric].is_some())).collect();
    let view = View { model, widest, metrics, full_power: model.recent.full_power(), appearance };
    if heading > 0
        && let Some(mut row) = Row::new(area, 1, appearance, buffer)
    {
        view.headings(&mut row);
    }
    for (place, gpu) in gpus.iter().enumerate().skip(first).take(shown) {
        let down = 1 + heading + (place - first) * each;
        let style = if focused && place == model.gpu { SELECTED } else { STRONG };
        for line in 0..each {
            let Some(mut row) = Row::new(area, down + line, appearance, buffer) else { return };
            match (each, line) {
                (1, _) => view.all_in_one(gpu, style, &mut row),
                (_, 0) => view.memory(gpu, style, &mut row),
                (_, 1) => view.over_time(gpu, &mut row),
                _ => view.tenants(gpu, &mut row),
            }
        }
    }
}

/// Common to all rows.
struct View<'a> {
    model: &'a Model,
    /// Width of the longest name.
    widest: usize,
    /// The shown metrics.
    metrics: Vec<Metric>,
    /// In watts.
    full_power: f64,
    appearance: Appearance,
}

/// One chart over time.
struct Figure<'a> {
    name: &'static str,
    trace: &'a [Option<f64>],
    /// The value at full height.
    full: f64,
    now: String,
}

impl View<'_> {
    fn memory(&self, gpu: &GpuDetail, style: Style, row: &mut Row<'_>) {
        let kind = gpu.name.trim_start_matches("NVIDIA ");
        let state_text = state_text(gpu);
        let kind_width = 15.min(row.left() / 5);
        row.skip(1).number(&name(gpu), self.widest, style).skip(1).cell(kind, kind_width, style).skip(1);
        let text = 13 + 5 + if state_text.is_empty() { 0 } else { 1 + state_text.chars().count().min(24) };
        let bar = row.left().saturating_sub(text + 3);
        self.bar(gpu, bar, row);
        let used = memory_text(gpu);
        row.skip(1).number(&used, 9, STRONG).text(" GiB", Style::new());
        row.number(&temperature(gpu), 5, FAINT).skip(1);
        row.text(&state_text, if is_broken(gpu) { self.appearance.alarm() } else { self.appearance.notable() });
    }

    fn bar(&self, gpu: &GpuDetail, width: usize, row: &mut Row<'_>) {
        let glyphs = self.appearance.glyphs();
        row.letter('[', FAINT);
        let mut before = None;
        for part in cells(gpu, width) {
            let mark = match part {
                Part::Used(job) | Part::Reserved(job) => self.model.marks.of(job),
                Part::Others | Part::Free => None,
            };
            let (letter, style) = match (part, mark) {
                // With colours, one letter at the beginning is enough.
                (Part::Used(_), Some(mark)) if self.appearance.colour && before == Some(part) => (' ', self.appearance.bar(mark)),
                (Part::Used(_), Some(mark)) => (mark.letter(), self.appearance.bar(mark)),
                (Part::Reserved(_), Some(mark)) => (glyphs.reserved, self.appearance.reserved(mark)),
                (Part::Free, _) => (glyphs.free, FAINT),
                (Part::Others, _) | (_, None) => (glyphs.others, Style::new()),
            };
            row.letter(letter, style);
            before = Some(part);
        }
        row.letter(']', FAINT);
    }

    /// The metrics, and power.
    fn figures(&self, gpu: &GpuDetail) -> Vec<Figure<'_>> {
        let traces = self.model.recent.of(gpu.device);
        let metric = |metric: &Metric| Figure {
            name: metric.name(),
            trace: traces.map_or(&[][..], |traces| &traces.utilisation[*metric]),
            full: 1.0,
            now: gpu.utilisation[*metric].map_or_else(|| "-".to_owned(), |share| format!("{:.2}", share.get())),
        };
        let watts = gpu.power.map_or_else(|| "-".to_owned(), |watts| format!("{:.0} W", watts.0));
        let power = Figure { name: POWER, trace: traces.map_or(&[][..], |traces| &traces.power), full: self.full_power, now: watts };
        self.metrics.iter().map(metric).chain([power]).collect()
    }

    fn over_time(&self, gpu: &GpuDetail, row: &mut Row<'_>) {
        row.skip(self.widest + 2);
        // Each has its name, its last number and spaces besides.
        let width = (row.left().saturating_sub(1) / (self.metrics.len() + 1)).saturating_sub(12).min(40);
        for figure in self.figures(gpu) {
            row.text(figure.name, FAINT).skip(1);
            self.trace(&figure, width, row);
            let number = if figure.name == POWER { 5 } else { 4 };
            row.skip(1).number(&figure.now, number, Style::new()).skip(1);
        }
    }

    fn trace(&self, Figure { trace, full, .. }: &Figure<'_>, width: usize, row: &mut Row<'_>) {
        let levels = self.appearance.glyphs().levels;
        let cells = trace.len().min(width);
        row.skip(width - cells);
        for cell in 0..cells {
            let samples = &trace[cell * trace.len() / cells..(cell + 1) * trace.len() / cells];
            let level = |value: f64| levels[((value / full).clamp(0.0, 1.0) * 7.0).round() as usize];
            row.letter(mean(samples).map_or(' ', level), self.appearance.trace());
        }
    }

    fn tenants(&self, gpu: &GpuDetail, row: &mut Row<'_>) {
        row.skip(self.widest + 2);
        for tenant in &gpu.tenants {
            if let Some(mark) = self.model.marks.of(tenant.attempt.job) {
                row.letter(mark.letter(), self.appearance.mark(mark)).skip(1);
            }
            row.text(&self.text(tenant), Style::new()).skip(2);
        }
        let text = if gpu.tenants.is_empty() && gpu.closed.is_empty() { "no jobs".to_owned() } else { gpu.closed.join("; ") };
        row.text(&text, FAINT);
    }

    /// A short text about a job on a GPU.
    fn text(&self, tenant: &GpuTenant) -> String {
        let id = self.model.name_of(tenant.attempt.job);
        let name = shortened(&printable(tenant.name.as_deref().unwrap_or_default()), 20);
        format!("{id} {name} {}", tenant_usage(tenant))
    }

    /// Widths of a full row: of the bar, and of the charts.
    fn widths(&self, row: &Row<'_>) -> (usize, usize) {
        let left = row.left().saturating_sub(self.widest + 2);
        let fixed = 3 + MEMORY_TEXT + 6 * self.metrics.len() + 7 + 6;
        let figures = if row.left() >= WIDE { self.metrics.len() + 1 } else { 1 };
        let flexible = left.saturating_sub(fixed + figures);
        // The bar is twice as wide as a chart.
        let bar = flexible * 2 / (figures + 2);
        (bar, flexible.saturating_sub(bar) / figures)
    }

    fn headings(&self, row: &mut Row<'_>) {
        let (bar, trace) = self.widths(row);
        let faint = FAINT;
        let wide = row.left() >= WIDE;
        row.skip(self.widest + 2).cell("memory by job", bar + 2, faint).skip(1).number("GiB", MEMORY_TEXT, faint);
        for (place, metric) in self.metrics.iter().map(|metric| metric.name()).chain([POWER]).enumerate() {
            let over_time = if wide || place == 0 { 1 + trace } else { 0 };
            row.number(metric, over_time + if metric == POWER { 7 } else { 6 }, faint);
        }
        row.number("temp", 6, faint);
    }

    fn all_in_one(&self, gpu: &GpuDetail, style: Style, row: &mut Row<'_>) {
        let (bar, trace) = self.widths(row);
        let wide = row.left() >= WIDE;
        row.skip(1).number(&name(gpu), self.widest, style).skip(1);
        self.bar(gpu, bar, row);
        row.skip(1);
        if is_broken(gpu) || gpu.drained {
            row.number(&memory_text(gpu), MEMORY_TEXT, STRONG).skip(1);
            row.text(&state_text(gpu), if is_broken(gpu) { self.appearance.alarm() } else { self.appearance.notable() });
            return;
        }
        row.number(&memory_text(gpu), MEMORY_TEXT, STRONG);
        for (place, figure) in self.figures(gpu).into_iter().enumerate() {
            if wide || place == 0 {
                row.skip(1);
                self.trace(&figure, trace, row);
            }
            row.number(&figure.now, if figure.name == POWER { 7 } else { 6 }, Style::new());
        }
        row.number(&temperature(gpu), 6, FAINT);
    }
}

/// Whether the driver lost it, or gets no answer from it.
const fn is_broken(gpu: &GpuDetail) -> bool {
    gpu.lost || gpu.silent_for.is_some()
}

/// The mean of the known values.
fn mean(samples: &[Option<f64>]) -> Option<f64> {
    let known = || samples.iter().flatten();
    let count = known().count();
    (count > 0).then(|| known().sum::<f64>() / count as f64)
}
