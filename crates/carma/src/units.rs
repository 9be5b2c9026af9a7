//! Numbers with units, for people.

/// A span of seconds in the two largest units that say something.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{minutes} min {:02} s", whole % 60),
        3600..86_400 => format!("{hours} h {minutes:02} min"),
        _ => format!("{days} d {hours:02} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_take_two_units() {
        assert_eq!([7.25, 61.0, 3725.0, 90_000.0].map(duration), ["7.2 s", "1 min 01 s", "1 h 02 min", "1 d 01 h"]);
    }
}
