//! Sizes, time spans and counts as users write them.

use std::str::FromStr;

use carma_core::{MiB, Seconds};

use super::error::Problem;

/// A size with its unit, in bytes; a bare number is MiB.
///
/// ```
/// use carma_manager::submission::bytes;
/// assert_eq!(bytes("1.5GiB"), bytes("1536"));
/// assert!(bytes("40 cows").is_err());
/// ```
pub fn bytes(word: &str) -> Result<u64, String> {
    let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "m" | "mib" | "mb" => 1 << 20,
        "t" | "tib" | "tb" => 1 << 40,
        "g" | "gib" | "gb" => 1 << 30,
        "k" | "kib" | "kb" => 1 << 10,
        unit => return Err(format!("unknown unit `{unit}`: use MiB or GiB")),
    };
    let number: f64 = digits.trim().parse().map_err(|_| format!("`{word}` is not a size such as 40GiB"))?;
    if number.is_finite() && (0.0..1e9).contains(&number) {
        Ok((number * factor as f64) as u64)
    } else {
        Err(format!("`{word}` is out of range"))
    }
}

/// A size in MiB, or with a unit, as in `40GiB`.
pub fn memory_size(text: &str) -> Result<MiB, String> {
    memory(text).map_err(|problem| problem.to_string())
}

/// Memory, rounded up to MiB; not 0.
pub(super) fn memory(text: &str) -> Result<MiB, Problem> {
    match bytes(text).map_err(Problem::Refused)?.div_ceil(1 << 20) {
        0 => Err(Problem::invalid(text, "a size of 1 MiB or more, such as 40GiB")),
        size => Ok(MiB(size)),
    }
}

/// Memory. A small number needs its unit: a user who writes 7 means 7 GiB, and would get 7 MiB.
pub(super) fn memory_with_unit(text: &str) -> Result<MiB, Problem> {
    const SMALL: u64 = 512;
    match digits(text).filter(|number| (1..SMALL).contains(number)) {
        Some(number) => Err(Problem::Refused(format!("{number} has no unit: write {number}GiB or {number}MiB"))),
        None => memory(text),
    }
}

/// A number with a lower bound.
pub(super) fn at_least<T: FromStr + PartialOrd + Copy>(least: T, text: &str, expected: &'static str) -> Result<T, Problem> {
    text.parse().ok().filter(|number| *number >= least).ok_or_else(|| Problem::invalid(text, expected))
}

/// A time limit as in Slurm, or a number with a unit; `unlimited` is no limit.
pub fn time_limit(text: &str) -> Result<Option<Seconds>, Problem> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let seconds = slurm_span(text).or_else(|| spans_with_units(text));
    match seconds.ok_or_else(|| Problem::invalid(text, "a time: minutes, or as in 90s, 30m, 12h, 1h30m, 2d, 1:30:00 or 1-12:00:00"))? {
        0 => Err(Problem::Refused(format!("{text:?} would end the job at once: give a longer time, or unlimited for none"))),
        seconds => Ok(Some(Seconds::from_secs(seconds))),
    }
}

/// Whole numbers with units, one after the other: `1h30m`, `1h 30min`.
fn spans_with_units(text: &str) -> Option<u64> {
    let is_unit = |letter: char| letter.is_ascii_alphabetic();
    let mut rest = text;
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let unit = rest[number..].len() - rest[number..].trim_start_matches(is_unit).len();
        sum = sum.checked_add(span_with_unit(&rest[..number + unit])?)?;
        rest = rest[number + unit..].trim_start();
    }
    (!text.is_empty()).then_some(sum)
}

/// Minutes; minutes:seconds; hours:minutes:seconds; days-hours, and so on.
fn slurm_span(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').map_or((None, text), |(days, clock)| (Some(days), clock));
    let numbers = clock.split(':').map(digits).collect::<Option<Vec<_>>>()?;
    let (hours, minutes, seconds) = match (days, numbers.as_slice()) {
        (None, &[minutes]) => (0, minutes, 0),
        (None, &[minutes, seconds]) => (0, minutes, seconds),
        (Some(_), &[hours]) => (hours, 0, 0),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        _ => return None,
    };
    let days = days.map_or(Some(0), digits)?;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

/// A whole number and one of its units, by its first letter or by name.
pub fn span_with_unit(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text[number.len()..].to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    Some(digits(number)? * factor)
}

/// A number of at most ten digits.
pub(super) fn digits(text: &str) -> Option<u64> {
    if text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{memory, time_limit};
    use carma_core::{MiB, Seconds};

    #[test]
    fn a_bare_size_is_mib_and_parts_of_one_round_up() {
        assert_eq!(["40", "40GiB", "1.5g", "1k"].map(|text| memory(text).unwrap()), [40, 40_960, 1536, 1].map(MiB));
        for wrong in ["", "0", "-1", "40 cows", "NaN", "GiB", "1e300", "é"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_limits_have_the_forms_of_slurm() {
        let times = ["30", "30m", "1:30", "1:30:00", "1-12", "1-12:30", "1-12:00:00", "2d", "90S", "1h 30min", "1h30m"];
        let seconds =
            [1800, 1800, 90, 5400, 129_600, 131_400, 129_600, 172_800, 90, 5400, 5400].map(|seconds| Some(Seconds::from_secs(seconds)));
        assert_eq!(times.map(|text| time_limit(text).unwrap()), seconds);
        assert_eq!(time_limit("UNLIMITED"), Ok(None));
        for wrong in ["", "0", "1:", "-1", "1-", "1:2:3:4", "1-2:3:4:5", "+5", "5 m", "m", "99999999999", "1h30", "h30m"] {
            assert!(time_limit(wrong).is_err(), "{wrong}");
        }
        assert!(time_limit("0").unwrap_err().to_string().contains("unlimited for none"));
    }
}
