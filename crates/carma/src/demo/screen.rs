//! Both managers at work: on a terminal frames that are redrawn, otherwise one line per event, in order of time.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use carma_core::{JobId, Verdict};
use carma_manager::api::{GpuDetail, Queue, QueueQuery, QueueRow, TimedUpdate, Update};
use carma_manager::client::Client;
use carma_manager::store::{Phase, UnixMillis};

use super::Scenario;
use super::timeline::{Elapsed, Timeline};
use carma_format::clock;
use carma_format::{Stream, Terminal, WIDTH, fitted, printable};

/// Width of a memory bar.
const BAR: usize = 20;

/// One of the two runs.
#[derive(Debug)]
pub(super) struct RunView {
    name: &'static str,
    title: String,
    /// Phase and attempt of each job.
    phases: BTreeMap<JobId, (Phase, u32)>,
    latest: String,
    gpus: Vec<GpuDetail>,
    queue: Queue,
    began: Option<UnixMillis>,
}

impl RunView {
    pub(super) fn new(name: &'static str, title: String) -> Self {
        Self { name, title, phases: BTreeMap::new(), latest: String::new(), gpus: Vec::new(), queue: Queue::default(), began: None }
    }

    /// Time since the first job of this run was submitted; unset: none was.
    fn elapsed(&self, at: UnixMillis) -> Option<Elapsed> {
        self.began.map(|began| at.0.saturating_sub(began.0))
    }

    /// A line about a change of a job, and its time; unset if nothing new happened.
    fn line(&mut self, change: &TimedUpdate, scenario: &Scenario) -> Option<(Elapsed, String)> {
        let Update::Job { job, state, attempt, text, .. } = &change.update else { return None };
        self.began.get_or_insert(change.at);
        if self.phases.insert(*job, (*state, *attempt)) == Some((*state, *attempt)) {
            return None;
        }
        let what = match state {
            Phase::Queued | Phase::Preempted | Phase::Held | Phase::Estimating => "is queued",
            Phase::Starting if *attempt > 1 => "starts again",
            Phase::Starting => "starts",
            Phase::Recovering => &format!("{} and is queued again", Verdict::OutOfMemory),
            Phase::Done => text.strip_prefix(&job.to_string()).unwrap_or(text).trim_start(),
            Phase::Running => return None,
        };
        let elapsed = self.elapsed(change.at)?;
        let time = clock(elapsed as f64 / 1000.0);
        let line = printable(&format!("{time:>7} {:<9} {:>2} {} {what}", self.name, job.0, scenario.workload(*job)));
        Some((elapsed, fitted(&line)))
    }

    fn finished(&self) -> usize {
        self.phases.values().filter(|(state, _)| *state == Phase::Done).count()
    }

    fn lines(&self, jobs: usize) -> Vec<String> {
        let waiting: Vec<&QueueRow> = self.queue.jobs.iter().filter(|row| row.devices.is_empty()).collect();
        let counts =
            format!("{} running, {} queued, {} of {jobs} done", self.queue.jobs.len() - waiting.len(), waiting.len(), self.finished());
        let mut lines = vec![format!("{:<w$}{counts}", self.title, w = WIDTH.saturating_sub(counts.len()))];
        lines.extend(self.gpus.iter().map(|gpu| gpu_line(gpu, &self.queue)));
        let names: Vec<String> = waiting.iter().map(|row| format!("{} {}", row.id.0, row.name.as_deref().unwrap_or_default())).collect();
        lines.push(format!("queued: {}", names.join(", ")));
        lines.push(self.latest.clone());
        lines
    }
}

/// A GPU: its memory and its jobs.
fn gpu_line(gpu: &GpuDetail, queue: &Queue) -> String {
    let used = gpu.memory_used.unwrap_or_default();
    let filled = (BAR as f64 * used.0 as f64 / gpu.memory.0.max(1) as f64).round() as usize;
    let bar: String = (0..BAR).map(|place| if place < filled { '#' } else { '.' }).collect();
    let job = |id: JobId| queue.jobs.iter().find(|row| row.id == id).and_then(|row| row.name.clone()).unwrap_or_default();
    let tenants: Vec<String> = gpu.tenants.iter().map(|tenant| format!("{} {}", tenant.attempt.job.0, job(tenant.attempt.job))).collect();
    let (used, all) = (used.0 as f64 / 1024.0, gpu.memory.0 / 1024);
    format!("GPU {} [{bar}] {used:>4.1}/{all} GiB  {}", gpu.device.gpu.ordinal, tenants.join(", "))
}

/// The output of both runs.
pub(super) struct Screen<'a, Output> {
    views: [RunView; 2],
    clients: [Client; 2],
    scenario: &'a Scenario,
    output: &'a mut Output,
    live: bool,
    begun: Instant,
    /// Lines of the last frame.
    drawn: usize,
    timeline: Timeline,
}

impl<'a, Output: Write> Screen<'a, Output> {
    pub(super) fn new(views: [RunView; 2], clients: [Client; 2], scenario: &'a Scenario, output: &'a mut Output) -> Self {
        let timeline = Timeline::default();
        Self {
            views,
            clients,
            scenario,
            output,
            live: Terminal::current().output == Stream::Screen,
            begun: Instant::now(),
            drawn: 0,
            timeline,
        }
    }

    /// A job changed in one of the runs.
    pub(super) fn job_changed(&mut self, run: usize, change: &TimedUpdate) -> Result<()> {
        let Some((elapsed, line)) = self.views[run].line(change, self.scenario) else { return Ok(()) };
        if self.live {
            self.views[run].latest = line;
            return Ok(());
        }
        self.timeline.add(elapsed, line);
        self.print()
    }

    /// One of the runs has reported everything before this time.
    pub(super) fn complete_until(&mut self, run: usize, at: UnixMillis) -> Result<()> {
        let Some(elapsed) = self.views[run].elapsed(at) else { return Ok(()) };
        self.timeline.complete_until(run, elapsed);
        self.print()
    }

    /// One of the runs has ended.
    pub(super) fn ended(&mut self, run: usize) -> Result<()> {
        self.timeline.ended(run);
        self.print()
    }

    fn print(&mut self) -> Result<()> {
        let lines = self.timeline.ready();
        for line in &lines {
            writeln!(self.output, "{line}")?;
        }
        if lines.is_empty() { Ok(()) } else { Ok(self.output.flush()?) }
    }

    /// Draws the present state of both runs on a terminal.
    pub(super) fn draw(&mut self) -> Result<()> {
        if !self.live {
            return Ok(());
        }
        for (view, client) in self.views.iter_mut().zip(&mut self.clients) {
            // After an error the next frame tries again.
            if let (Ok(gpus), Ok(queue)) = (client.gpus(), client.queue(&QueueQuery::default())) {
                (view.gpus, view.queue) = (gpus, queue);
            }
        }
        let elapsed = clock(self.begun.elapsed().as_secs_f64() * self.scenario.speed);
        let mut lines = vec![format!("Emulated time {elapsed} (runs {} times faster than real time)", self.scenario.speed)];
        for view in &self.views {
            lines.push(String::new());
            lines.extend(view.lines(self.scenario.trace.jobs.len()));
        }
        self.clear()?;
        for line in &lines {
            writeln!(self.output, "{}", fitted(&printable(line)))?;
        }
        self.drawn = lines.len();
        Ok(self.output.flush()?)
    }

    /// Erases the last frame.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.drawn > 0 {
            write!(self.output, "\x1b[{}A\x1b[J", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }
}
