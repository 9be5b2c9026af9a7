//! Resource usage of this process, from `/proc`.

use std::fs;

/// Resource usage of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    pub(super) cpu_seconds: f64,
    pub(super) resident_bytes: f64,
    pub(super) open_files: f64,
}

impl Process {
    /// This process; none without `/proc`.
    pub fn own() -> Option<Self> {
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as f64;
        let (ticks, page) = (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
        let (ticked, pages) =
            (cpu_ticks(&fs::read_to_string("/proc/self/stat").ok()?)?, resident(&fs::read_to_string("/proc/self/statm").ok()?)?);
        Some(Self { cpu_seconds: ticked / ticks, resident_bytes: pages * page, open_files })
    }
}

/// User and kernel time, from a line in which the program's name may contain any bytes.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number)?.parse::<f64>().ok();
    // Counted from the third field, which is the state.
    Some(field(11)? + field(12)?)
}

fn resident(statm: &str) -> Option<f64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_and_spaces_are_skipped() {
        let stat = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 100 200";
        assert_eq!(cpu_ticks(stat), Some(300.0));
        assert_eq!(resident("1000 42 7 1 0 3 0\n"), Some(42.0));
        assert!(Process::own().unwrap().resident_bytes > 0.0);
    }
}
