//! Benchmarks of how cost grows: each case relative to a named reference case of the same run, in time and instructions.
//!
//! Time is the median over many calls. Instructions are counted by Valgrind's callgrind in a second run of the same
//! program, inside the measured calls only, so that they do not depend on other load.

mod instructions;
mod processor;
mod table;

pub use processor::{processor_time, thread_times};

use std::hint::black_box;
use std::time::{Duration, Instant};

use table::Row;

/// How often cases are called.
#[derive(Debug, Clone, Copy)]
pub struct Calls {
    /// When timed.
    pub timed: usize,
    /// With instruction counting, which is fifty times slower; 0: do not count.
    pub counted: usize,
}

/// For calls of microseconds.
const MANY: Calls = Calls { timed: 2_000, counted: 50 };

/// A list of cases, run in order and printed as they finish.
#[derive(Debug)]
pub struct Suite {
    rows: Vec<Row>,
    calls: Calls,
    /// Set in the second run, to the one case whose instructions are counted.
    counted: Option<String>,
}

/// One benchmark: a state, its preparation before each call, and the call.
pub struct Case<'a, S> {
    /// Its name, unique in its suite.
    pub name: &'a str,
    /// Operations in a call; results are per operation.
    pub units: usize,
    /// The earlier case to compare with; its own name for a reference case.
    pub reference: &'a str,
    /// Makes the state.
    pub setup: &'a dyn Fn() -> S,
    /// Prepares the state for the next call; not measured.
    pub prepare: &'a dyn Fn(&mut S),
    /// The measured call.
    pub call: &'a dyn Fn(&mut S),
}

impl Suite {
    /// Begins a suite.
    pub fn new(title: &str) -> Self {
        Self::with_calls(title, MANY)
    }

    /// Begins a suite with fewer calls, for calls that take long.
    pub fn with_calls(title: &str, calls: Calls) -> Self {
        let counted = instructions::case_to_count();
        if counted.is_none() {
            table::print_head(title);
        }
        Self { rows: Vec::new(), calls, counted }
    }

    /// Measures a case and prints its row. With words after `--`, only cases whose name contains one of them.
    pub fn run<S>(&mut self, case: &Case<'_, S>) {
        let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
        if words.peek().is_some() && !words.any(|word| case.name.contains(&word)) {
            return;
        }
        if let Some(counted) = &self.counted {
            if counted == case.name {
                call_repeatedly(case, self.calls.counted);
            }
            return;
        }
        let mut times = call_repeatedly(case, self.calls.timed);
        times.sort_unstable();
        let counted = (self.calls.counted * case.units) as u64;
        let instructions = (counted > 0).then(|| instructions::count(case.name)).flatten().map(|total| total / counted);
        let row = Row { name: case.name.to_owned(), time: times[times.len() / 2] / case.units as u32, instructions };
        table::print_row(&row, self.rows.iter().find(|row| row.name == case.reference).unwrap_or(&row));
        self.rows.push(row);
    }

    /// Prints the time that this share of the cases does not exceed.
    pub fn print_quantile(&self, share: f64) {
        let mut times: Vec<Duration> = self.rows.iter().map(|row| row.time).collect();
        times.sort_unstable();
        let nth = (share * times.len() as f64).ceil() as usize;
        if let Some(time) = nth.checked_sub(1).and_then(|place| times.get(place)) {
            println!("{:.0} % of these {} cases take at most {:.1} us", share * 100.0, times.len(), time.as_secs_f64() * 1e6);
        }
    }
}

fn call_repeatedly<S>(case: &Case<'_, S>, calls: usize) -> Vec<Duration> {
    let mut state = (case.setup)();
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        (case.prepare)(&mut state);
        let begin = Instant::now();
        carma_measured_section(case.call, &mut state);
        times.push(begin.elapsed());
    }
    black_box(&state);
    times
}

/// Callgrind collects inside this function only, by its name.
#[inline(never)]
fn carma_measured_section<S>(call: &dyn Fn(&mut S), state: &mut S) {
    call(black_box(state));
}
