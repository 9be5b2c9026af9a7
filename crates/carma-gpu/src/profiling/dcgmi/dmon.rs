//! The output of `dcgmi dmon`, line by line.

use std::ops::Range;

use super::super::fields::{Field, by_short_name};
use super::super::problem::Problem;

/// The device of a row, by DCGM's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// A GPU.
    Gpu(u32),
    /// A GPU instance.
    Instance(u32),
    /// A compute instance.
    ComputeInstance(u32),
}

impl Entity {
    fn read(kind: &str, number: &str) -> Option<Self> {
        let number = number.parse().ok()?;
        match kind {
            "GPU" => Some(Self::Gpu(number)),
            "GPU-I" => Some(Self::Instance(number)),
            "GPU-CI" => Some(Self::ComputeInstance(number)),
            _ => None,
        }
    }
}

/// A row of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its device.
    pub entity: Entity,
    /// The known fields, with their values if there are any.
    pub values: Vec<(&'static Field, Option<f64>)>,
}

/// A line with content.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Values.
    Row(Row),
    /// An error.
    Problem(Problem),
}

/// Reads the lines as they come. The head repeats now and then, and what it says holds until the next.
///
/// ```
/// use carma_gpu::profiling::dcgmi::{Entity, Line, Monitor};
/// let mut monitor = Monitor::default();
/// assert_eq!(monitor.read("#Entity   GRACT        SMACT"), None);
/// let Some(Line::Row(row)) = monitor.read("GPU 1     1.000        0.926") else { panic!() };
/// assert_eq!(row.entity, Entity::Gpu(1));
/// assert_eq!(row.values[1].1, Some(0.926));
/// ```
#[derive(Debug, Default)]
pub struct Monitor {
    columns: Vec<(Range<usize>, Option<&'static Field>)>,
}

impl Monitor {
    /// Reads one line; heads, units and blank lines return nothing.
    pub fn read(&mut self, line: &str) -> Option<Line> {
        if let Some(problem) = Problem::from_line(line) {
            return Some(Line::Problem(problem));
        }
        let words = words(line);
        let mut names = words.iter().map(|(_, word)| word.trim_start_matches('#')).filter(|word| !word.is_empty());
        if names.next() == Some("Entity") && line.trim_start().starts_with('#') {
            let heads = words.into_iter().filter(|(_, word)| !matches!(*word, "#" | "#Entity" | "Entity"));
            self.columns = heads.map(|(place, word)| (place, by_short_name(word))).collect();
            return None;
        }
        let [(_, kind), (_, number), cells @ ..] = words.as_slice() else { return None };
        let entity = Entity::read(kind, number)?;
        let cell = |index: usize, place: &Range<usize>| {
            if cells.len() == self.columns.len() {
                return cells.get(index);
            }
            // Some cells are blank. The version decides which end of the head the others align with: either way they overlap it.
            cells.iter().find(|(cell, _)| cell.start < place.end && place.start < cell.end)
        };
        let value = |(index, (place, field)): (usize, &(Range<usize>, Option<&'static Field>))| {
            let value = cell(index, place).and_then(|(_, word)| word.parse().ok());
            field.map(|field| (field, value))
        };
        Some(Line::Row(Row { entity, values: self.columns.iter().enumerate().filter_map(value).collect() }))
    }
}

/// The words of a line with their places.
fn words(line: &str) -> Vec<(Range<usize>, &str)> {
    let place = |word: &str| word.as_ptr().addr() - line.as_ptr().addr();
    line.split_whitespace().map(|word| (place(word)..place(word) + word.len(), word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row as its entity and its values by short name.
    fn read(text: &str) -> Vec<String> {
        let mut monitor = Monitor::default();
        let show = |line| match line {
            Line::Problem(problem) => problem.to_string(),
            Line::Row(row) => {
                let value = |(field, value): &(&Field, Option<f64>)| format!("{} {value:?}", field.short_name);
                format!("{:?}: {}", row.entity, row.values.iter().map(value).collect::<Vec<_>>().join(", "))
            }
        };
        text.lines().filter_map(|line| monitor.read(line)).map(show).collect()
    }

    #[test]
    fn a_captured_stream_is_read() {
        assert_eq!(
            read(include_str!("samples/dmon-3.txt")),
            [
                "Gpu(1): GRACT None, SMACT None, DRAMA None",
                "Gpu(0): GRACT None, SMACT None, DRAMA None",
                "Gpu(1): GRACT Some(1.0), SMACT Some(0.926), DRAMA Some(0.869)",
                "Gpu(0): GRACT Some(0.984), SMACT Some(0.93), DRAMA Some(0.252)",
            ]
        );
    }

    #[test]
    fn published_rows_of_instances_are_read() {
        assert_eq!(
            read(include_str!("samples/dmon-mig.txt")),
            [
                "Instance(21): GRACT Some(0.0), SMACT Some(0.0), SMOCC Some(0.0), TENSO Some(0.0)",
                "Instance(29): GRACT Some(0.495), SMACT Some(0.49), SMOCC Some(0.061), TENSO Some(0.468)",
                "Instance(28): GRACT Some(0.993), SMACT Some(0.987), SMOCC Some(0.123), TENSO Some(0.94)",
            ]
        );
    }

    #[test]
    fn errors_below_a_published_head_are_read() {
        let heads = ["# Entity  GRACT\n      Id       \n", "#Entity   SMACT        \nID                     \n"];
        let result = "The third-party Profiling module returned an unrecoverable error";
        for head in heads {
            let said = read(&format!("{head}Error setting watches. Result: {result}\n"));
            assert_eq!(said, [format!("the DCGM host engine refuses to watch the counters: {result}")]);
        }
    }

    #[test]
    fn version_2_aligns_to_the_right_and_shows_units() {
        let text = "# Entity  POWER  TOTEC  GRACT\n      Id      W     mJ\n    GPU 0  52.1           0.902\n   GPU-I 3    N/A    N/A  0.250\n  GPU-CI 3                0.125\n";
        assert_eq!(
            read(text),
            [
                "Gpu(0): POWER Some(52.1), TOTEC None, GRACT Some(0.902)",
                "Instance(3): POWER None, TOTEC None, GRACT Some(0.25)",
                "ComputeInstance(3): POWER None, TOTEC None, GRACT Some(0.125)",
            ]
        );
    }

    #[test]
    fn a_later_header_changes_the_columns() {
        let text = "GPU 0     1.000\n#Entity   SMACT        XXXXX\nID\nGPU 0     0.500        7\n\n#Entity   DRAMA\nID\nGPU 0     0.750\nSwitch 0  1.000\n";
        assert_eq!(read(text), ["Gpu(0): ", "Gpu(0): SMACT Some(0.5)", "Gpu(0): DRAMA Some(0.75)"]);
    }

    #[test]
    fn errors_are_passed_on() {
        let text = "Error setting watches. Result: Profiling is not supported for this group of GPUs or GPU\n";
        assert_eq!(
            read(text),
            ["the DCGM host engine refuses to watch the counters: Profiling is not supported for this group of GPUs or GPU"]
        );
    }
}
