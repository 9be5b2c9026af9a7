//! Numbers, counts, memory and energy.

/// A number with as many decimals as its size needs.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with its noun: `1 job`, `12,000 jobs`, `2 processes`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", thousands(number))
}

/// A count with separated thousands.
pub fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut separated = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated
}

/// A change in percent with its sign: `+4.1 %`, and `0 %` without one.
pub fn change(share: f64, decimals: usize) -> String {
    let text = format!("{:+.decimals$}", 100.0 * share);
    let zero = text.contains('0') && text.chars().all(|digit| !digit.is_ascii_digit() || digit == '0');
    format!("{} %", if zero { text.trim_start_matches(['+', '-']) } else { text.as_str() })
}

/// Memory in GiB, or in MiB below 1 GiB.
pub fn memory(mib: impl Into<u64>) -> String {
    let mib = mib.into();
    if mib < 1024 { format!("{mib} MiB") } else { format!("{:.1} GiB", mib as f64 / 1024.0) }
}

/// Energy in kWh, or in Wh below 0.1 kWh.
pub fn energy(joules: f64) -> String {
    let kilowatt_hours = joules / 3.6e6;
    if kilowatt_hours < 0.1 { format!("{} Wh", number(kilowatt_hours * 1000.0)) } else { format!("{} kWh", number(kilowatt_hours)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.5, 1.0, 12.345, 1234.5].map(number), ["0.5", "1", "12.3", "1234"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn no_change_has_no_sign() {
        assert_eq!([0.041, -0.176, -0.0001, 0.0].map(|share| change(share, 1)), ["+4.1 %", "-17.6 %", "0.0 %", "0.0 %"]);
        assert_eq!([-0.004, -0.006].map(|share| change(share, 0)), ["0 %", "-1 %"]);
    }

    #[test]
    fn nouns_have_a_plural() {
        assert_eq!([count(0, "GPU"), count(1, "process"), count(2, "process")], ["0 GPUs", "1 process", "2 processes"]);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!([512_u64, 40_960].map(memory), ["512 MiB", "40.0 GiB"]);
        assert_eq!([0.0, 900.0, 3.6e4, 5.4e6, 7.2e6].map(energy), ["0 Wh", "0.25 Wh", "10 Wh", "1.5 kWh", "2 kWh"]);
    }
}
