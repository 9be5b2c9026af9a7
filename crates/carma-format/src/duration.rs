//! Durations.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// A range shows the hour or day of its begin only if that is at least this share of the begin.
const LEAST_SHARE: f64 = 0.8;

/// A duration in its two largest units: `1 h 30 min`.
pub fn duration(seconds: f64) -> String {
    if seconds < 10.0 && seconds.fract() != 0.0 {
        return format!("{seconds:.1} s");
    }
    // Rounded first, so that 59.9 s are a minute, and minutes are never 60.
    let seconds = match seconds.max(0.0) {
        long if long >= DAY as f64 => rounded(long, HOUR),
        long if long >= HOUR as f64 => rounded(long, MINUTE),
        short => rounded(short, 1),
    };
    let [(large, large_unit), (small, small_unit)] = match seconds {
        s if s < MINUTE => return format!("{s} s"),
        s if s < HOUR => [(s / MINUTE, "min"), (s % MINUTE, "s")],
        s if s < DAY => [(s / HOUR, "h"), (s % HOUR / MINUTE, "min")],
        s => [(s / DAY, "d"), (s % DAY / HOUR, "h")],
    };
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small} {small_unit}") }
}

fn rounded(seconds: f64, to: u64) -> u64 {
    (seconds / to as f64).round() as u64 * to
}

/// A duration as clocks show it, short enough for columns: `0:07`, `1:02:03`, `2-03:04`.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (days, hours, minutes, seconds) = (whole / DAY, whole / HOUR % 24, whole / MINUTE % 60, whole % MINUTE);
    match whole {
        0..HOUR => format!("{minutes}:{seconds:02}"),
        HOUR..DAY => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}"),
    }
}

/// A range of durations, rounded outwards: `2 to 6 min`. It has one unit, unless rounding would lose much of its beginning: `59 min to 2.5 h`.
pub fn range(earliest: f64, latest: f64) -> String {
    let latest = latest.max(earliest).max(0.0);
    let (unit, name) = match latest {
        short if short <= 90.0 => (1.0, "s"),
        short if short <= 90.0 * 60.0 => (MINUTE as f64, "min"),
        long if long <= 48.0 * 3600.0 => (HOUR as f64, "h"),
        _ => (DAY as f64, "d"),
    };
    // Two digits are enough: seconds in tens, halves of few hours and days.
    let step = match (name, latest / unit) {
        ("s", _) => 10.0,
        ("h" | "d", few) if few < 10.0 => 0.5,
        _ => 1.0,
    };
    let (low, high) = ((earliest.max(0.0) / unit / step).floor() * step, (latest / unit / step).ceil().max(1.0) * step);
    let smaller = match name {
        "h" => Some((MINUTE as f64, "min")),
        "d" => Some((HOUR as f64, "h")),
        _ => None,
    };
    if let Some((unit, part)) = smaller.filter(|(smaller, _)| earliest >= *smaller && low * unit < LEAST_SHARE * earliest) {
        return format!("{} {part} to {high} {name}", (earliest / unit).floor());
    }
    if low <= 0.0 { format!("up to {high} {name}") } else { format!("{low} to {high} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        for (earliest, latest, text) in [
            (0.0, 0.0, "up to 10 s"),
            (12.0, 73.0, "10 to 80 s"),
            (50.0, 300.0, "up to 5 min"),
            (130.0, 345.0, "2 to 6 min"),
            (3000.0, 9000.0, "50 min to 2.5 h"),
            (3599.0, 11_000.0, "59 min to 3.5 h"),
            (4000.0, 11_000.0, "1 to 3.5 h"),
            (40_000.0, 60_000.0, "11 to 17 h"),
            (90_000.0, 300_000.0, "1 to 3.5 d"),
        ] {
            assert_eq!(range(earliest, latest), text);
        }
    }

    #[test]
    fn durations_have_two_units() {
        let seconds = [0.0, 4.25, 45.0, 59.7, 90.0, 3599.7, 3600.0, 5400.0, 7199.0, 86_399.0, 86_400.0, 129_600.0, 180_000.0];
        let expected =
            ["0 s", "4.2 s", "45 s", "1 min", "1 min 30 s", "1 h", "1 h", "1 h 30 min", "2 h", "1 d", "1 d", "1 d 12 h", "2 d 2 h"];
        assert_eq!(seconds.map(duration), expected);
    }

    #[test]
    fn clocks_are_short() {
        assert_eq!([7.9, 61.0, 3725.0, 90_061.0].map(clock), ["0:07", "1:01", "1:02:05", "1-01:01"]);
    }
}
