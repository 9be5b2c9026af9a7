//! Numbers with units, as people read them in messages and on screens.

use carma_core::MiB;

/// A span of seconds in the two largest units that say something.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{minutes} min {:02} s", whole % 60),
        3600..86_400 => format!("{hours} h {minutes:02} min"),
        _ => format!("{days} d {hours:02} h"),
    }
}

/// Memory in GiB, or in MiB where it is little.
pub fn memory(size: MiB) -> String {
    if size.0 < 1024 { size.to_string() } else { format!("{:.1} GiB", size.0 as f64 / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_two_units() {
        assert_eq!([7.25, 61.0, 3725.0, 90_000.0].map(duration), ["7.2 s", "1 min 01 s", "1 h 02 min", "1 d 01 h"]);
    }

    #[test]
    fn little_memory_is_told_in_mib() {
        assert_eq!([512, 40_960].map(|size| memory(MiB(size))), ["512 MiB", "40.0 GiB"]);
    }
}
