//! Both managers as they are at work: a picture drawn again and again on a terminal, else a line for everything that happens.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use anyhow::Result;
use carma_core::JobId;
use carma_manager::api::{GpuDetail, Queue, QueueQuery, QueueRow, Told, Update};
use carma_manager::client::Client;
use carma_manager::store::{Phase, UnixMillis};

use super::Play;
use crate::text::{WIDTH, printable, shortened};
use crate::units::clock;

/// Letters of a bar of memory.
const BAR: usize = 20;

/// One of the two runs.
#[derive(Debug)]
pub(super) struct Side {
    name: &'static str,
    title: String,
    /// Where each job stands, and in which attempt.
    standing: BTreeMap<JobId, (Phase, u32)>,
    latest: String,
    gpus: Vec<GpuDetail>,
    queue: Queue,
    began: Option<UnixMillis>,
}

impl Side {
    pub(super) fn new(name: &'static str, title: String) -> Self {
        Self { name, title, standing: BTreeMap::new(), latest: String::new(), gpus: Vec::new(), queue: Queue::default(), began: None }
    }

    /// What happened to a job, in a line; nothing where it stands as it stood.
    fn words(&mut self, told: &Told, play: &Play) -> Option<String> {
        let Update::Job { job, state, attempt, text, .. } = &told.update else { return None };
        let began = *self.began.get_or_insert(told.at);
        if self.standing.insert(*job, (*state, *attempt)) == Some((*state, *attempt)) {
            return None;
        }
        let what = match state {
            Phase::Queued | Phase::Preempted | Phase::Held => "waits",
            Phase::Starting if *attempt > 1 => "starts again",
            Phase::Starting => "starts",
            Phase::Recovering => "ran out of memory, and will be back",
            Phase::Done => text.strip_prefix(&job.to_string()).unwrap_or(text).trim_start(),
            Phase::Running => return None,
        };
        let since = clock(told.at.0.saturating_sub(began.0) as f64 / 1000.0);
        Some(printable(&format!("{since:>7} {:<9} {:>2} {} {what}", self.name, job.0, play.workload(*job))))
    }

    fn over(&self) -> usize {
        self.standing.values().filter(|(state, _)| *state == Phase::Done).count()
    }

    fn lines(&self, jobs: usize) -> Vec<String> {
        let waiting: Vec<&QueueRow> = self.queue.jobs.iter().filter(|row| row.devices.is_empty()).collect();
        let counts = format!("{} run, {} wait, {} of {jobs} done", self.queue.jobs.len() - waiting.len(), waiting.len(), self.over());
        let mut lines = vec![format!("{:<w$}{counts}", self.title, w = WIDTH.saturating_sub(counts.len()))];
        lines.extend(self.gpus.iter().map(|gpu| lane(gpu, &self.queue)));
        let names: Vec<String> = waiting.iter().map(|row| format!("{} {}", row.id.0, row.name.as_deref().unwrap_or_default())).collect();
        lines.push(format!("waiting: {}", names.join(", ")));
        lines.push(self.latest.clone());
        lines
    }
}

/// A GPU: its memory and who is on it.
fn lane(gpu: &GpuDetail, queue: &Queue) -> String {
    let used = gpu.memory_used.unwrap_or_default();
    let filled = (BAR as f64 * used.0 as f64 / gpu.memory.0.max(1) as f64).round() as usize;
    let bar: String = (0..BAR).map(|place| if place < filled { '#' } else { '.' }).collect();
    let job = |id: JobId| queue.jobs.iter().find(|row| row.id == id).and_then(|row| row.name.clone()).unwrap_or_default();
    let tenants: Vec<String> = gpu.tenants.iter().map(|tenant| format!("{} {}", tenant.attempt.job.0, job(tenant.attempt.job))).collect();
    let (used, all) = (used.0 as f64 / 1024.0, gpu.memory.0 / 1024);
    format!("GPU {} [{bar}] {used:>4.1}/{all} GiB  {}", gpu.device.gpu.ordinal, tenants.join(", "))
}

/// Where it is all shown.
pub(super) struct Screen<'a, Output> {
    sides: [Side; 2],
    clients: [Client; 2],
    play: &'a Play,
    output: &'a mut Output,
    live: bool,
    begun: Instant,
    /// Lines of the last picture.
    drawn: usize,
}

impl<'a, Output: Write> Screen<'a, Output> {
    pub(super) fn new(sides: [Side; 2], clients: [Client; 2], play: &'a Play, output: &'a mut Output) -> Self {
        Self { sides, clients, play, output, live: io::stdout().is_terminal(), begun: Instant::now(), drawn: 0 }
    }

    /// Something happened in one of the runs.
    pub(super) fn tell(&mut self, place: usize, told: &Told) -> Result<()> {
        let Some(words) = self.sides[place].words(told, self.play) else { return Ok(()) };
        let line = shortened(&words, WIDTH);
        if !self.live {
            writeln!(self.output, "{line}")?;
            self.output.flush()?;
        }
        self.sides[place].latest = line;
        Ok(())
    }

    /// Draws how both are now, where somebody looks.
    pub(super) fn draw(&mut self) -> Result<()> {
        if !self.live {
            return Ok(());
        }
        for (side, client) in self.sides.iter_mut().zip(&mut self.clients) {
            // A picture that cannot be had is had a moment later.
            if let (Ok(gpus), Ok(queue)) = (client.gpus(), client.queue(&QueueQuery::default())) {
                (side.gpus, side.queue) = (gpus, queue);
            }
        }
        let passed = clock(self.begun.elapsed().as_secs_f64() * self.play.speed);
        let mut lines = vec![format!("{passed} on the emulated clock, {}x ours", self.play.speed)];
        for side in &self.sides {
            lines.push(String::new());
            lines.extend(side.lines(self.play.trace.jobs.len()));
        }
        self.clear()?;
        for line in &lines {
            writeln!(self.output, "{}", shortened(&printable(line), WIDTH))?;
        }
        self.drawn = lines.len();
        Ok(self.output.flush()?)
    }

    /// Takes the picture away.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.drawn > 0 {
            write!(self.output, "\x1b[{}A\x1b[J", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }
}
