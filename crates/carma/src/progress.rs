//! Progress on standard error, only on a terminal. All long commands show it in one style: a bar, or a line now and then where nothing can be redrawn.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use carma_format::{Stream, Terminal};
use carma_learn::on_all_cores;
use indicatif::{HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Redraw interval, with or without progress.
const TICK: Duration = Duration::from_millis(200);

/// Interval of lines, where nothing can be redrawn.
const LINES: Duration = Duration::from_secs(10);

/// On a narrower terminal, a bar and a rate would need two lines.
const NARROW: u16 = 60;

/// A bar, or a spinner if the total is unknown. Drop removes it.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the last line was printed; unset: none is.
    line: Option<Mutex<Instant>>,
}

/// A bar for this many items, with their rate and the remaining time.
pub(crate) fn bar(length: usize, what: &str) -> Progress {
    let narrow = Terminal::current().columns.is_some_and(|columns| columns < NARROW);
    let template = if narrow { "{wide_msg} {pos}/{len} {eta} left" } else { "{msg} {wide_bar} {pos}/{len} {rate} {eta} left" };
    Progress::drawn(Some(length), what, template)
}

/// Runs all on all cores under a bar; returns the first error, if any.
pub(crate) fn simulate_all<T: Sync, R: Send, E: Send>(runs: &[T], simulate: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E> {
    let bar = bar(runs.len(), "simulating");
    let results = on_all_cores(runs, |run| {
        let result = simulate(run);
        bar.step();
        result
    });
    results.into_iter().collect()
}

/// Collects all items, whose number is unknown.
pub(crate) fn collect_counted<T, E: Into<anyhow::Error>>(what: &str, items: impl Iterator<Item = Result<T, E>>) -> anyhow::Result<Vec<T>> {
    let spinner = Progress::drawn(None, what, "{spinner} {msg} {pos} {rate} {elapsed}");
    items.inspect(|_| spinner.step()).collect::<Result<Vec<T>, E>>().map_err(Into::into)
}

/// Runs work that does not report its progress.
pub(crate) fn with_spinner<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _spinner = Progress::spinner(what);
    work()
}

/// Runs a program to its end. While a spinner is shown, the program's output goes through us, so that they do not overwrite each other.
pub(crate) fn run_program(what: &str, command: &mut Command) -> io::Result<ExitStatus> {
    let spinner = Progress::spinner(what);
    if spinner.bar.is_hidden() {
        return command.status();
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| spinner.pass_on(errors, |line| eprint!("{line}")));
        spinner.pass_on(output, |line| print!("{line}"));
    });
    child.wait()
}

impl Progress {
    fn spinner(what: &str) -> Self {
        Self::drawn(None, what, "{spinner} {msg} {elapsed}")
    }

    fn drawn(length: Option<usize>, what: &str, template: &str) -> Self {
        let terminal = Terminal::current();
        let target = if terminal.errors == Stream::Screen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(length.map(|length| length as u64), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            let style = if terminal.unicode { style } else { style.tick_chars("|/-\\ ").progress_chars("#>-") };
            bar.set_style(style.with_key("rate", |state: &ProgressState, output: &mut dyn fmt::Write| {
                // A failed write is redrawn at the next tick.
                let _ = output.write_str(&rate(state.per_sec()));
            }));
        }
        bar.set_message(what.to_owned());
        if terminal.errors == Stream::Screen {
            bar.enable_steady_tick(TICK);
        }
        let line = (terminal.errors == Stream::Lines).then(|| {
            eprintln!("carma: {what}");
            Mutex::new(Instant::now())
        });
        Self { bar, line }
    }

    /// Advances by one.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
        let Some(Ok(mut last)) = self.line.as_ref().map(Mutex::try_lock) else { return };
        if last.elapsed() >= LINES {
            *last = Instant::now();
            eprintln!("carma: {}", line(&self.bar.message(), self.bar.position(), self.bar.length()));
        }
    }

    /// Advances by one, with a new total.
    pub(crate) fn step_of(&self, all: usize) {
        self.bar.set_length(all as u64);
        self.step();
    }

    fn pass_on(&self, from: Option<impl Read>, write: impl Fn(&str)) {
        let Some(mut lines) = from.map(BufReader::new) else { return };
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            self.bar.suspend(|| write(&String::from_utf8_lossy(&line)));
            line.clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress as a sentence.
fn line(what: &str, done: u64, all: Option<u64>) -> String {
    let all = all.map_or_else(String::new, |all| format!(" of {all}"));
    format!("{what}: {done}{all}")
}

/// Items per second, with a decimal if it is useful.
fn rate(per_second: f64) -> String {
    let decimals = usize::from(per_second < 100.0);
    format!("{:.decimals$}/s", HumanFloatCount(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_much_is_done() {
        assert_eq!([line("simulating", 7, Some(80)), line("reading jobs", 7, None)], ["simulating: 7 of 80", "reading jobs: 7"]);
    }

    #[test]
    fn rates_have_few_digits() {
        assert_eq!([0.0, 0.26, 12.34, 99.94, 1160.3688, 123_456.7].map(rate), ["0/s", "0.3/s", "12.3/s", "99.9/s", "1,160/s", "123,457/s"]);
    }
}
