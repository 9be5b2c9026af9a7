//! Start times as users write them: `now+1hour`, `16:00`, `2027-01-31T08:00`.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, ToSpan, Zoned};

use super::error::Problem;
use super::values::{digits, span_with_unit};

const EXPECTED: &str = "a start time: give now+1hour, 16:00, 2027-01-31 or 2027-01-31T08:00";

/// The time in seconds since 1970. A time of day is the next such time; a time in the past is refused.
pub(super) fn begin(text: &str, now: &Zoned) -> Result<u64, Problem> {
    let moment = moment(text, now).ok_or_else(|| Problem::invalid(text, EXPECTED))?;
    if &moment < now {
        return Err(Problem::Refused(format!("{text:?} has passed: it is {} now", now.strftime("%Y-%m-%dT%H:%M:%S %Z"))));
    }
    u64::try_from(moment.timestamp().as_second()).map_err(|_| Problem::invalid(text, EXPECTED))
}

fn moment(text: &str, now: &Zoned) -> Option<Zoned> {
    if text == "now" {
        return Some(now.clone());
    }
    if let Some(span) = text.strip_prefix("now+") {
        // As in Slurm, a bare number is seconds.
        let seconds = digits(span).or_else(|| span_with_unit(span))?;
        return now.checked_add(SignedDuration::from_secs(seconds.try_into().ok()?)).ok();
    }
    // The library accepts longer texts and ignores the rest; the separators decide what a text is.
    match (text.matches('-').count(), text.contains(':')) {
        (0, true) => {
            let time: Time = text.parse().ok()?;
            let today = now.with().time(time).build().ok()?;
            if &today < now { now.checked_add(1.day()).ok()?.with().time(time).build().ok() } else { Some(today) }
        }
        (2, true) => text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok(),
        (2, false) => text.parse::<Date>().ok()?.to_zoned(now.time_zone().clone()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Zoned;
    use jiff::tz::{self, TimeZone};

    use super::begin;

    /// Two hours ahead of Greenwich, so that a moment taken for UTC shows.
    fn now() -> Zoned {
        let zone = TimeZone::fixed(tz::offset(2));
        jiff::civil::date(2027, 1, 30).at(12, 0, 0, 0).to_zoned(zone).unwrap()
    }

    #[test]
    fn times_are_in_the_callers_zone() {
        let noon = u64::try_from(now().timestamp().as_second()).unwrap();
        let hours = |text: &str| (begin(text, &now()).unwrap() - noon) / 3600;
        assert_eq!(["now", "now+1hour", "now+2days", "now+7200"].map(hours), [0, 1, 48, 2]);
        assert_eq!(["16:00", "12:00", "08:00:00", "11:00"].map(hours), [4, 0, 20, 23]);
        assert_eq!(["2027-01-31T08:00", "2027-01-31 08:00:00", "2027-01-31"].map(hours), [20, 20, 12]);
    }

    #[test]
    fn invalid_and_past_times_are_refused() {
        for wrong in ["", "now+", "now-1", "now+1cow", "25:00", "tomorrow at eight", "2027-02-30", "2027-13-01T00:00", "now+9999999999w"] {
            assert!(begin(wrong, &now()).unwrap_err().to_string().contains("is not a start time"), "{wrong}");
        }
        assert_eq!(
            begin("2027-01-30T11:00", &now()).unwrap_err().to_string(),
            "\"2027-01-30T11:00\" has passed: it is 2027-01-30T12:00:00 +02 now"
        );
    }
}
