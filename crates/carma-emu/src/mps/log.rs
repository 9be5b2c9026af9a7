//! Log files as MPS writes them.

use std::fmt::Display;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A log file. Failed writes are ignored: the daemon continues to serve.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// The writer: `Control` or `Server`.
    writer: &'static str,
}

impl Log {
    pub(super) fn open(folder: &Path, name: &str, writer: &'static str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { file: File::options().create(true).append(true).open(folder.join(name))?, writer })
    }

    /// Lets other users write too, if it is ours.
    pub(super) fn open_to_all(&self) {
        let _ = self.file.set_permissions(Permissions::from_mode(0o666));
    }

    pub(super) fn line(&self, text: impl Display) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // One write, because several processes write to one file.
        let line = format!("[{} {} {}] {text}\n", moment(now), self.writer, std::process::id());
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

/// A moment since 1970 as `2024-01-12 08:59:54.130`, in UTC.
fn moment(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    // Years are counted from March, so that the leap day comes last.
    let day = days + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}.{:03}", second % 60, since_1970.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_calendar() {
        let at = |seconds: u64| moment(Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01 00:00:00.007");
        assert_eq!(at(951_826_154), "2000-02-29 12:09:14.007");
        assert_eq!(at(1_705_049_994), "2024-01-12 08:59:54.007");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59.007");
    }
}
