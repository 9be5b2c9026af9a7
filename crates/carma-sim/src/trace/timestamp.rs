//! Dates of logs, which state no time zone: seconds since 1970, taken as UTC.

/// Seconds since 1970 of a date such as `2017-10-09 07:01:55`. Fractions of a second are truncated.
pub(super) fn seconds_since_1970(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let [year, month, day] = three(date, '-')?;
    let whole = time.trim_end_matches('Z').split_once('.').map_or(time.trim_end_matches('Z'), |(whole, _)| whole);
    let [hour, minute, second] = three(whole, ':')?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let sensible = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=days_of_month).contains(&day);
    // A second of 60 is a leap second.
    (sensible && hour < 24 && minute < 60 && second <= 60).then(|| ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days since 1970, by counting years from March so that the leap day comes last.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_TO_1970: u64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month_from_march + 2) / 5 + day - 1 - DAYS_TO_1970
}

fn three(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut number = || {
        let part = parts.next()?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let all = [number()?, number()?, number()?];
    parts.next().is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_as_the_calendar_does() {
        assert_eq!(seconds_since_1970("1970-01-01 00:00:00"), Some(0));
        assert_eq!(seconds_since_1970("2000-02-29 00:00:00"), Some(951_782_400));
        assert_eq!(seconds_since_1970("2017-10-09T07:01:55.250Z"), Some(1_507_532_515));
        assert_eq!(seconds_since_1970("2100-03-01 00:00:00"), Some(4_107_542_400));
    }

    #[test]
    fn invalid_dates_are_refused() {
        let wrong = ["", "None", "2017-10-09", "2017-13-01 00:00:00", "2017-02-29 00:00:00", "2017-10-09 24:00:00", "1969-12-31 23:59:59"];
        for text in wrong.into_iter().chain(["2017-10-09 07:01", "2017-10-+9 07:01:55", "2017-10-09 07:01:55:00"]) {
            assert_eq!(seconds_since_1970(text), None, "{text}");
        }
    }
}
