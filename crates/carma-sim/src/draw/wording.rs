//! Numbers as people read them.

use std::collections::BTreeSet;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A time in its two largest units: `1 h 30 min`.
pub fn duration(seconds: f64) -> String {
    if seconds < 10.0 && seconds.fract() != 0.0 {
        return format!("{seconds:.1} s");
    }
    // Rounded first, so that 59.9 s are a minute, and minutes never 60.
    let seconds = match seconds.max(0.0) {
        long if long >= 2.0 * DAY as f64 => rounded(long, HOUR),
        long if long >= HOUR as f64 => rounded(long, MINUTE),
        short => rounded(short, 1),
    };
    let parts = match seconds {
        0 => return "0".to_owned(),
        s if s < MINUTE => [(s, "s"), (0, "")],
        s if s < HOUR => [(s / MINUTE, "min"), (s % MINUTE, "s")],
        s if s < 2 * DAY && s % DAY != 0 => [(s / HOUR, "h"), (s % HOUR / MINUTE, "min")],
        s => [(s / DAY, "d"), (s % DAY / HOUR, "h")],
    };
    let words: Vec<String> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect();
    words.join(" ")
}

fn rounded(seconds: f64, to: u64) -> u64 {
    (seconds / to as f64).round() as u64 * to
}

/// A number with as many decimals as its size asks for.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with its noun: `1 job`, `12,000 jobs`.
pub fn count(how_many: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(how_many), if how_many == 1 { "" } else { "s" })
}

/// A count with its thousands apart.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut apart = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// Energy in the unit people pay for.
pub fn energy(joules: f64) -> String {
    let kilowatt_hours = joules / 3.6e6;
    if kilowatt_hours < 0.1 { format!("{} Wh", number(kilowatt_hours * 1000.0)) } else { format!("{} kWh", number(kilowatt_hours)) }
}

/// A name that may be a file's or an anchor's, and that no other has.
pub fn unique_slug(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut slug = String::new();
    for character in name.chars() {
        match character.to_ascii_lowercase() {
            plain @ ('a'..='z' | '0'..='9') => slug.push(plain),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    // Long enough to tell policies apart, short enough for every file system.
    slug.truncate(60);
    let slug = match slug.trim_end_matches('-') {
        "" => "unnamed",
        some => some,
    };
    let mut free = slug.to_owned();
    let mut next = 2;
    while !taken.insert(free.clone()) {
        free = format!("{slug}-{next}");
        next += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_two_units() {
        let said = [0.0, 4.25, 45.0, 59.7, 90.0, 3600.0, 5400.0, 7199.0, 86_400.0, 129_600.0, 180_000.0].map(duration);
        let expected = ["0", "4.2 s", "45 s", "1 min", "1 min 30 s", "1 h", "1 h 30 min", "2 h", "1 d", "36 h", "2 d 2 h"];
        assert_eq!(said, expected);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.5, 1.0, 12.345, 1234.5].map(number), ["0.5", "1", "12.3", "1234"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([3.6e4, 7.2e6].map(energy), ["10 Wh", "2 kWh"]);
    }

    #[test]
    fn names_of_files_are_plain_and_unique() {
        let mut taken = BTreeSet::new();
        let slugs = ["or-magm", "EST-MAGM (oracle)", "est-magm <oracle>", "../é", ""].map(|name| unique_slug(name, &mut taken));
        assert_eq!(slugs, ["or-magm", "est-magm-oracle", "est-magm-oracle-2", "unnamed", "unnamed-2"]);
    }
}
