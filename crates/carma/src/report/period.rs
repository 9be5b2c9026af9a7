//! The period of a report: split into columns of charts, with dates for their axes.

use carma_format::draw::{Anchor, Chart, Scale, Unit};
use carma_manager::store::UnixMillis;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Lengths of columns, in seconds.
const COLUMNS: [u64; 13] =
    [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY];
/// More columns are not distinguishable.
const MOST_COLUMNS: u64 = 200;
/// Steps between dates beside an axis.
const STEPS: [u64; 12] =
    [10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY, 84 * DAY];
const MOST_DATES: u64 = 9;

/// From one moment to another, in a time zone.
#[derive(Debug, Clone)]
pub(super) struct Period {
    pub(super) since: UnixMillis,
    pub(super) until: UnixMillis,
    pub(super) zone: TimeZone,
}

impl Period {
    pub(super) const fn seconds(&self) -> f64 {
        self.until.0.saturating_sub(self.since.0) as f64 / 1000.0
    }

    /// Width of a chart column, in milliseconds.
    pub(super) fn column(&self) -> u64 {
        let fits = |seconds: &u64| self.seconds() <= (seconds * MOST_COLUMNS) as f64;
        1000 * COLUMNS.into_iter().find(fits).unwrap_or(7 * DAY)
    }

    pub(super) fn columns(&self) -> usize {
        (self.until.0.saturating_sub(self.since.0)).div_ceil(self.column()).max(1) as usize
    }

    /// When a column begins.
    pub(super) fn begins(&self, column: usize) -> UnixMillis {
        UnixMillis(self.since.0 + column as u64 * self.column())
    }

    fn zoned(&self, UnixMillis(at): UnixMillis) -> Zoned {
        let timestamp = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_default();
        timestamp.to_zoned(self.zone.clone())
    }

    /// A moment, to the minute.
    pub(super) fn moment(&self, at: UnixMillis) -> String {
        self.zoned(at).strftime("%-d %b %Y, %H:%M").to_string()
    }

    /// Both ends of it.
    pub(super) fn text(&self) -> String {
        format!("{} to {}", self.moment(self.since), self.moment(self.until))
    }

    /// The scale of its time across a chart, in seconds.
    pub(super) fn scale(&self, left: f64, right: f64) -> Scale {
        Scale::linear((self.since.0 as f64 / 1000.0, self.until.0 as f64 / 1000.0), (left, right), Unit::Number)
    }

    /// Gridlines at round local times, with their dates below.
    pub(super) fn axis(&self, chart: &mut Chart, scale: &Scale, (top, bottom): (f64, f64)) {
        for (at, text) in self.dates() {
            let x = scale.place(at);
            chart.line("grid", (x, top), (x, bottom));
            chart.text("small quiet", Anchor::Middle, (x, bottom + 15.0), &text);
        }
        chart.line("axis", (scale.start, bottom), (scale.end, bottom));
    }

    /// Round times within it, in seconds since 1970, and how they are written.
    fn dates(&self) -> Vec<(f64, String)> {
        let seconds = self.seconds() as u64;
        let step = STEPS.into_iter().find(|step| seconds / step <= MOST_DATES).unwrap_or(84 * DAY);
        let Ok(midnight) = self.zoned(self.since).start_of_day() else { return Vec::new() };
        // Calendar days; some have 23 hours.
        let add = |place: u64| match step {
            DAY.. => midnight.checked_add(i64::try_from(place * step / DAY).unwrap_or_default().days()),
            _ => midnight.checked_add(SignedDuration::from_secs((place * step).cast_signed())),
        };
        let written = |at: &Zoned| {
            let begins = at.start_of_day().is_ok_and(|day| day == *at);
            at.strftime(if begins { "%-d %b" } else { "%H:%M" }).to_string()
        };
        let dates = (0..=(seconds + DAY) / step + 1).filter_map(|place| add(place).ok());
        let within = |at: &Zoned| {
            let at = at.timestamp().as_millisecond();
            (self.since.0.cast_signed()..=self.until.0.cast_signed()).contains(&at)
        };
        let dates = dates.filter(within).enumerate().map(|(place, at)| {
            // The day is shown at least once.
            let text = if place == 0 && step < DAY { at.strftime("%-d %b, %H:%M").to_string() } else { written(&at) };
            (at.timestamp().as_millisecond() as f64 / 1000.0, text)
        });
        dates.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(hours: u64) -> Period {
        let since = "2027-01-15T08:20:00Z".parse::<Timestamp>().unwrap().as_millisecond().cast_unsigned();
        Period { since: UnixMillis(since), until: UnixMillis(since + hours * HOUR * 1000), zone: TimeZone::fixed(jiff::tz::offset(2)) }
    }

    #[test]
    fn columns_and_dates_have_readable_numbers() {
        let columns = [1, 24, 168, 24 * 90].map(|hours| (period(hours).column() / 1000, period(hours).columns()));
        assert_eq!(columns, [(60, 60), (600, 144), (3600, 168), (12 * HOUR, 180)]);
        let dates = |hours| period(hours).dates().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        assert_eq!(dates(1), "15 Jan, 10:20 10:30 10:40 10:50 11:00 11:10 11:20");
        assert_eq!(dates(24), "15 Jan, 12:00 16:00 20:00 16 Jan 04:00 08:00");
        assert_eq!(dates(168), "16 Jan 17 Jan 18 Jan 19 Jan 20 Jan 21 Jan 22 Jan");
    }
}
