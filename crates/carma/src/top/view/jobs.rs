//! Jobs: running ones with GPU and progress, waiting ones with the reason.

use carma_core::MiB;
use carma_manager::api::{Counts, GpuDetail, QueueRow};
use carma_manager::store::Phase;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::model::{Model, Pane, Prompt, Sort};
use super::appearance::{Appearance, FAINT, SELECTED};
use super::canvas::{Row, first_in_sight, title};
use super::gpu_text::tenant_usage;
use crate::manager::{devices, identity, remark};
use carma_format::clock;

/// Widths of the columns that have one.
const USER: usize = 8;
const STATE: usize = 10;
const TIME: usize = 8;
const GPU: usize = 7;
const MEMORY: usize = 6;

pub(super) fn draw(model: &Model, area: Rect, appearance: Appearance, buffer: &mut Buffer) {
    let jobs = &model.jobs;
    let focused = model.focus == Pane::Jobs;
    title(area, "Jobs", &heading(model), focused, appearance, buffer);
    let columns = Columns::new(area, jobs.widest);
    if let Some(mut row) = Row::new(area, 1, appearance, buffer) {
        columns.headings(&mut row, FAINT);
    }
    let rows = usize::from(area.height).saturating_sub(2);
    let first = first_in_sight(jobs.place(), rows, jobs.len());
    for (place, job) in jobs.from(first).take(rows).enumerate() {
        let selected = first + place == jobs.place();
        let Some(mut row) = Row::new(area, 2 + place, appearance, buffer) else { return };
        columns.job(model, job, appearance, &mut row);
        if selected && focused {
            row.fill(" ", Style::new());
            buffer.set_style(Rect { y: area.y + 2 + place as u16, height: 1, ..area }, SELECTED);
        }
    }
    if jobs.len() == 0
        && let Some(mut row) = Row::new(area, 2, appearance, buffer)
    {
        let text = match model.answers {
            None => "",
            Some(_) if jobs.is_filtered() => " no job fits: Esc shows all",
            Some(_) => " nothing runs and nothing waits: `carma submit` asks for a job",
        };
        row.text(text, FAINT);
    }
}

/// The counts of jobs, and the filter.
fn heading(model: &Model) -> String {
    let jobs = &model.jobs;
    let Counts { running, waiting, held } = jobs.counts();
    let some = jobs.is_filtered() || (jobs.len() as u64) < running + waiting + held;
    let typing = model.prompt == Some(Prompt::Filter);
    let parts = [
        Some(format!("{running} running, {waiting} waiting, {held} held")),
        some.then(|| format!("{} listed", jobs.len())),
        (jobs.sort != Sort::Queue).then(|| format!("by {}", jobs.sort.name())),
        jobs.filter.mine.then(|| "mine".to_owned()),
        (typing || !jobs.filter.text.is_empty()).then(|| format!("/{}{}", jobs.filter.text, if typing { "_" } else { "" })),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

/// Widths that depend on the terminal.
struct Columns {
    id: usize,
    name: usize,
}

impl Columns {
    fn new(area: Rect, widest: usize) -> Self {
        let id = widest.clamp(3, 12);
        let left = usize::from(area.width).saturating_sub(2 + id + USER + STATE + TIME + GPU + 2 * MEMORY + 8);
        // Names and reasons share the remaining width; reasons are longer.
        Self { id, name: (left * 2 / 5).clamp(8, 32) }
    }

    fn headings(&self, row: &mut Row<'_>, style: Style) {
        row.skip(2).number("ID", self.id, style).skip(1).cell("NAME", self.name, style).skip(1);
        row.cell("USER", USER, style).skip(1).cell("STATE", STATE, style).skip(1).number("TIME", TIME, style).skip(1);
        row.cell("GPU", GPU, style).skip(1).number("RESVD", MEMORY, style).skip(1).number("USED", MEMORY, style).skip(1).text("WHY", style);
    }

    fn job(&self, model: &Model, job: &QueueRow, appearance: Appearance, row: &mut Row<'_>) {
        let plain = Style::new();
        match model.marks.of(job.id) {
            Some(mark) => row.letter(mark.letter(), appearance.mark(mark)),
            None => row.skip(1),
        };
        // Jobs of other users are fainter.
        let id = if model.may_change(job.uid) { plain } else { FAINT };
        row.skip(1).number(&identity(job.id, job.array), self.id, id).skip(1);
        row.cell(job.name.as_deref().unwrap_or("-"), self.name, plain).skip(1).cell(&job.user, USER, id).skip(1);
        row.cell(&job.state.to_string(), STATE, state_style(job.state, appearance)).skip(1);
        row.number(&clock(job.for_seconds.get()), TIME, plain).skip(1);
        let gpus = if job.devices.is_empty() { format!("({})", job.gpus) } else { devices(job.devices.iter().copied()) };
        let memory = |size: Option<MiB>| size.map_or_else(|| "-".to_owned(), |MiB(size)| format!("{:.1}G", size as f64 / 1024.0));
        row.cell(&gpus, GPU, plain).skip(1).number(&memory(job.memory), MEMORY, plain).skip(1);
        row.number(&memory(job.used), MEMORY, plain).skip(1);
        row.text(&remark(job), plain);
    }
}

const fn state_style(state: Phase, appearance: Appearance) -> Style {
    match state {
        Phase::Running => appearance.good(),
        Phase::Recovering | Phase::Preempted => appearance.notable(),
        Phase::Held | Phase::Estimating => FAINT,
        Phase::Queued | Phase::Starting | Phase::Done => Style::new(),
    }
}

/// Details of the selected job that do not fit into its row.
pub(super) fn about(job: &QueueRow, gpus: &[GpuDetail]) -> String {
    let name = job.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let on = |gpu: &GpuDetail| {
        let tenant = gpu.tenants.iter().find(|tenant| tenant.attempt.job == job.id)?;
        Some(format!("{} on GPU {}", tenant_usage(tenant), devices([gpu.device])))
    };
    let places = gpus.iter().filter_map(on).collect::<Vec<_>>().join(", ");
    format!("job {}{name}: {}", identity(job.id, job.array), job.reason.as_deref().unwrap_or(&places))
}
