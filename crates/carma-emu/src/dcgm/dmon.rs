//! `dcgmi dmon`: counters as text, a tick at a time.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread;
use std::time::Instant;

use carma_gpu::profiling::dcgmi::Entity;
use carma_gpu::profiling::fields::{FIELDS, Field, Measure};

use super::arguments::Watch;
use super::observation::{Observation, observe};
use super::read_state;
use crate::machine::Machine;

/// Widths of the columns.
const ENTITY: usize = 10;
const VALUE: usize = 13;
/// Ticks between two heads.
const TICKS_A_HEAD: u64 = 14;

/// Prints the requested ticks, or until the output is closed; returns a message on failure.
pub(super) fn run(machine: &Machine, watch: &Watch, out: &mut impl Write) -> io::Result<Result<(), String>> {
    let mut next = Instant::now();
    let mut before: Vec<Observation> = Vec::new();
    for tick in 0..watch.count.unwrap_or(u64::MAX) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += watch.interval;
        let mut seen = match read_state(machine, observe) {
            Ok(seen) => seen,
            Err(message) => return Ok(Err(message)),
        };
        seen.sort_by_key(|seen| order(seen.entity));
        let wanted = |entity: Entity| match watch.entities.as_slice() {
            [] => matches!(entity, Entity::Gpu(_)),
            entities => entities.contains(&entity),
        };
        if let Some(missing) = watch.entities.iter().find(|entity| !seen.iter().any(|seen| seen.entity == **entity)) {
            return Ok(Err(format!("Error: Invalid entity: there is no {}.\n", name(*missing))));
        }
        let mut text = if tick % TICKS_A_HEAD == 0 { head(&watch.fields) } else { String::new() };
        for now in seen.iter().filter(|seen| wanted(seen.entity)) {
            let before = before.iter().find(|before| before.entity == now.entity);
            let values: Vec<Option<f64>> = watch.fields.iter().map(|field| now.value(field, before)).collect();
            text += &row(now.entity, &watch.fields, &values);
        }
        out.write_all(text.as_bytes())?;
        out.flush()?;
        before = seen;
    }
    Ok(Ok(()))
}

/// GPUs before their instances before the compute instances, each kind from its highest number down.
const fn order(entity: Entity) -> (u8, Reverse<u32>) {
    match entity {
        Entity::Gpu(number) => (0, Reverse(number)),
        Entity::Instance(number) => (1, Reverse(number)),
        Entity::ComputeInstance(number) => (2, Reverse(number)),
    }
}

fn name(entity: Entity) -> String {
    match entity {
        Entity::Gpu(number) => format!("GPU {number}"),
        Entity::Instance(number) => format!("GPU-I {number}"),
        Entity::ComputeInstance(number) => format!("GPU-CI {number}"),
    }
}

/// The names of the columns and their units.
fn head(fields: &[&Field]) -> String {
    let unit = |field: &&Field| match field.measure {
        Measure::Watts => "W",
        Measure::Millijoules => "mJ",
        _ => "",
    };
    line("#Entity", fields.iter().map(|field| field.short_name)) + &line("ID", fields.iter().map(unit))
}

fn row(entity: Entity, fields: &[&Field], values: &[Option<f64>]) -> String {
    let cell = |(field, value): (&&Field, &Option<f64>)| match (value, field.measure) {
        (None, _) => "N/A".to_owned(),
        (Some(value), Measure::Fraction | Measure::Watts) => format!("{value:.3}"),
        (Some(value), _) => format!("{value:.0}"),
    };
    line(&name(entity), fields.iter().zip(values).map(cell))
}

fn line(first: &str, cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut line = format!("{first:<ENTITY$}");
    for cell in cells {
        let _ = write!(line, "{:<VALUE$}", cell.as_ref());
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

/// The list of fields.
pub(super) fn list() -> String {
    let rule = "_".repeat(62) + "\n";
    let rows = FIELDS.iter().map(|field| format!("{:<30}{:>16}{:>16}\n", field.long_name, field.short_name, field.id));
    let head = format!("{:<30}{:>16}{:>16}\n", "Long Name", "Short Name", "Field ID");
    rule.clone() + &head + &rule + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use carma_gpu::profiling::dcgmi::{Line, Monitor};
    use carma_gpu::profiling::fields::by_id;

    use super::*;

    /// As real servers print it.
    const CAPTURED: &str = "\
#Entity   GRACT        SMACT        DRAMA
ID
GPU 1     N/A          N/A          N/A
GPU 0     N/A          N/A          N/A
GPU 1     1.000        0.926        0.869
GPU 0     0.984        0.930        0.252
";

    #[test]
    fn the_output_equals_the_captured_one() {
        let fields = [1001, 1002, 1005].map(|id| by_id(id).unwrap());
        let rows = [(1, [None; 3]), (0, [None; 3]), (1, [1.0, 0.926, 0.869].map(Some)), (0, [0.984, 0.93, 0.252].map(Some))];
        let text = rows.map(|(gpu, values)| row(Entity::Gpu(gpu), &fields, &values)).concat();
        assert_eq!(head(&fields) + &text, CAPTURED);
    }

    #[test]
    fn units_and_whole_numbers_are_written_and_read_back() {
        let fields = [155, 156, 203, 252, 1002].map(|id| by_id(id).unwrap());
        let values = [Some(52.1256), Some(123_456_789.0), Some(97.0), None, Some(0.5)];
        let text = head(&fields) + &row(Entity::Instance(7), &fields, &values);
        insta::assert_snapshot!(text, @"
        #Entity   POWER        TOTEC        GPUTL        FBUSD        SMACT
        ID        W            mJ
        GPU-I 7   52.126       123456789    97           N/A          0.500
        ");
        let mut monitor = Monitor::default();
        let lines: Vec<Line> = text.lines().filter_map(|line| monitor.read(line)).collect();
        let [Line::Row(row)] = lines.as_slice() else { panic!("{lines:?}") };
        let expected = [Some(52.126), Some(123_456_789.0), Some(97.0), None, Some(0.5)];
        assert_eq!(row.values, fields.into_iter().zip(expected).collect::<Vec<_>>());
        assert_eq!(row.entity, Entity::Instance(7));
    }

    #[test]
    fn fields_are_listed() {
        insta::assert_snapshot!(list().lines().take(6).collect::<Vec<_>>().join("\n"));
    }
}
