//! Progress on a terminal; nothing where nobody looks.

use std::io::IsTerminal;
use std::time::Duration;

use carma_estimate::learning::on_all_cores;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Runs all on all cores under a bar; the first error is the answer where there is any.
pub(crate) fn simulate_all<T: Sync, R: Send, E: Send>(runs: &[T], simulate: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E> {
    let bar = bar(runs.len(), "simulating");
    let results = on_all_cores(runs, |run| {
        let result = simulate(run);
        bar.inc(1);
        result
    });
    bar.finish_and_clear();
    results.into_iter().collect()
}

/// A bar for so many runs, with their rate and the time that is left.
pub(crate) fn bar(runs: usize, what: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
