//! Numbers with units, for people.

pub(crate) use carma_manager::submission::bytes;
pub(crate) use carma_manager::words::{duration, memory};

/// A span of seconds as clocks show it, in few letters for columns: `0:07`, `1:02:03`, `2-03:04`.
pub(crate) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (days, hours, minutes, seconds) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match whole {
        0..3600 => format!("{minutes}:{seconds:02}"),
        3600..86_400 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}"),
    }
}

/// Energy in the unit that keeps its number short.
pub(crate) fn energy(joules: f64) -> String {
    let watt_hours = joules / 3600.0;
    match watt_hours {
        1000.0.. => format!("{:.2} kWh", watt_hours / 1000.0),
        1.0.. => format!("{watt_hours:.2} Wh"),
        _ => format!("{joules:.0} J"),
    }
}

/// As a shell reads it, whatever stands in it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// So many of something.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// A text in lines of at most 80 columns.
pub(crate) fn wrapped(text: &str) -> String {
    wrapped_to(text, 80)
}

/// A text in lines of at most so many columns.
pub(crate) fn wrapped_to(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{clock, count, energy, wrapped};

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(40));
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [79, 79, 39]);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!([count(0, "GPU"), count(1, "process"), count(2, "process")], ["0 GPUs", "1 process", "2 processes"]);
    }

    #[test]
    fn columns_get_short_numbers() {
        assert_eq!([7.9, 61.0, 3725.0, 90_061.0].map(clock), ["0:07", "1:01", "1:02:05", "1-01:01"]);
        assert_eq!([0.0, 3599.0, 3600.0, 5.4e6].map(energy), ["0 J", "3599 J", "1.00 Wh", "1.50 kWh"]);
    }
}
