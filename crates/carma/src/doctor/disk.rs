//! The findings about the disks of the manager's state and logs. Pure.

use std::path::PathBuf;
use std::time::Duration;

use carma_core::MiB;

use super::findings::{Finding, Health, finding};

/// A slower commit is felt: each submit waits for one.
const SLOW_SYNC: Duration = Duration::from_millis(100);
/// An attempt leaves five files.
const FEW_INODES: u64 = 10_000;

/// A folder of the manager, and the disk that it is on.
#[derive(Debug)]
pub(super) struct Disk {
    /// What it holds.
    pub(super) what: &'static str,
    pub(super) folder: PathBuf,
    pub(super) total: MiB,
    /// What users other than root may write.
    pub(super) free: MiB,
    /// Free and all inodes; unset where the file system has no fixed number.
    pub(super) inodes: Option<(u64, u64)>,
    pub(super) written: Written,
}

/// The result of a small file that was written and synced.
#[derive(Debug)]
pub(super) enum Written {
    /// It took this long.
    In(Duration),
    Failed(String),
    /// This user may not write there.
    NotTried,
}

/// All findings about a disk. Below `least` of free space, the manager starts no more jobs.
pub(super) fn findings(disk: &Disk, least: MiB) -> Vec<Finding> {
    [Some(about_space(disk, least)), about_inodes(disk), about_writing(disk)].into_iter().flatten().collect()
}

fn about_space(Disk { what, folder, total, free, .. }: &Disk, least: MiB) -> Finding {
    let place = format!("{free} of {total} are free for {what} ({})", folder.display());
    let fix = "free some space; manager.keep and manager.logs limit what CARMA keeps";
    if *free < least {
        let says = format!("{place}, less than manager.host.disk ({least}): no new job starts");
        finding(Health::Error, says, Some(fix))
    } else if *free < MiB(least.0 * 4) || free.0 * 50 < total.0 {
        finding(Health::Warning, format!("only {place}"), Some(fix))
    } else {
        finding(Health::Ok, place, None)
    }
}

fn about_inodes(Disk { what, folder, inodes, .. }: &Disk) -> Option<Finding> {
    let (free, total) = (*inodes)?;
    let health = match free {
        0 => Health::Error,
        _ if free < FEW_INODES || free < total / 100 => Health::Warning,
        _ => return Some(finding(Health::Ok, format!("{free} of {total} inodes are free for {what}"), None)),
    };
    let says = format!("only {free} of {total} inodes are free for {what} ({}): new files soon fail", folder.display());
    Some(finding(health, says, Some("remove small files: df -i shows the file system")))
}

fn about_writing(Disk { what, folder, written, .. }: &Disk) -> Option<Finding> {
    match written {
        Written::NotTried => None,
        Written::In(time) if *time < SLOW_SYNC => {
            Some(finding(Health::Ok, format!("a file for {what} is written and synced in {:.1} ms", time.as_secs_f64() * 1000.0), None))
        }
        Written::In(time) => {
            let says = format!(
                "writing and syncing a small file for {what} takes {:.0} ms: each submit waits for that",
                time.as_secs_f64() * 1000.0
            );
            Some(finding(Health::Warning, says, Some("put the state folder on a local disk that is less busy")))
        }
        Written::Failed(error) => {
            let says = format!("a file for {what} cannot be written in {}: {error}", folder.display());
            Some(finding(Health::Error, says, Some("check the mount (read-only?), disk quotas, and the owner of the folder")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(free: u64) -> Disk {
        Disk {
            what: "state",
            folder: "/var/lib/carma".into(),
            total: MiB(1_000_000),
            free: MiB(free),
            inodes: Some((5_000_000, 6_000_000)),
            written: Written::In(Duration::from_millis(3)),
        }
    }

    fn healths(disk: &Disk) -> Vec<Health> {
        findings(disk, MiB(1024)).into_iter().map(|finding| finding.health).collect()
    }

    #[test]
    fn space_is_short_before_the_manager_stops_to_start_jobs() {
        assert_eq!(healths(&disk(500_000)), [Health::Ok; 3]);
        assert_eq!(healths(&disk(19_999))[0], Health::Warning, "below 2 %");
        assert_eq!(healths(&disk(1023))[0], Health::Error);
        let large = Disk { total: MiB(10_000), ..disk(4095) };
        assert_eq!(healths(&large)[0], Health::Warning, "below four times the limit");
    }

    #[test]
    fn inodes_and_writing_are_checked_apart_from_space() {
        let none = Disk { inodes: Some((0, 6_000_000)), ..disk(500_000) };
        assert_eq!(healths(&none), [Health::Ok, Health::Error, Health::Ok]);
        let few = Disk { inodes: Some((9_999, 20_000)), written: Written::In(Duration::from_millis(250)), ..disk(500_000) };
        assert_eq!(healths(&few), [Health::Ok, Health::Warning, Health::Warning]);
        let no_number = Disk { inodes: None, written: Written::Failed("read-only file system".to_owned()), ..disk(500_000) };
        assert_eq!(healths(&no_number), [Health::Ok, Health::Error]);
        assert_eq!(healths(&Disk { written: Written::NotTried, ..disk(500_000) }), [Health::Ok; 2]);
    }
}
