//! How SQLite keeps its journal, by the file system of the store.
//!
//! A write-ahead log needs memory that all processes share, which ends at the host. A store on a network file system therefore uses a rollback journal.
//!
//! What that costs: a commit syncs three times instead of once; and readers and commits wait for each other, where a log lets both continue. A commit waits until
//! the reads that run are over, and reads that come later wait for the commit, so many short reads cannot hold it up. One long read can: it is interrupted
//! after [`LONGEST_READ`], which is well below the time after which a manager's lease has run out.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::statfs;

/// The variable that overrides what the file system suggests: `wal` or `rollback`.
pub const JOURNAL_VARIABLE: &str = "CARMA_STORE_JOURNAL";
/// The longest read that may hold up commits.
pub(super) const LONGEST_READ: Duration = Duration::from_secs(20);

/// How the store keeps its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log, for a file system of this host.
    Wal,
    /// A rollback journal, for a file system that hosts may share.
    Rollback,
}

/// File systems that several hosts may use at once, by the number that `statfs` reports. FUSE is among them: sshfs and many cluster file systems use it.
const NETWORK: [(u32, &str); 24] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
    (0x00c3_6400, "CephFS"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "kAFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0xaad7_aaea, "PanFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x2003_0528, "OrangeFS"),
    (0x0131_11a8, "IBRIX"),
    (0xbeef_dead, "StorNext"),
    (0x6163_6673, "ACFS"),
    (0x786f_4256, "VirtualBox"),
    (0xbacb_acbc, "VMware"),
    (0x7c7c_6673, "Parallels"),
];

/// The name of a network file system; none for a file system of this host.
fn network_name(magic: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
}

/// The journal for a file system, unless the variable says otherwise.
fn choose(variable: Option<&str>, magic: u32) -> Result<Journal, String> {
    match variable {
        None | Some("") => Ok(if network_name(magic).is_some() { Journal::Rollback } else { Journal::Wal }),
        Some("wal") => Ok(Journal::Wal),
        Some("rollback") => Ok(Journal::Rollback),
        Some(other) => Err(format!("{JOURNAL_VARIABLE} is {other:?}: write wal or rollback")),
    }
}

impl Journal {
    /// The journal of a store in this folder.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        // The type of the field depends on the machine; the kernel's numbers have 32 bits.
        let magic = statfs(folder)?.f_type as u32;
        choose(std::env::var(JOURNAL_VARIABLE).ok().as_deref(), magic).map_err(io::Error::other)
    }

    /// Whether other hosts may use the store.
    pub(super) const fn is_shared(self) -> bool {
        matches!(self, Self::Rollback)
    }

    /// How long a connection waits for others.
    pub(super) const fn timeout(self) -> Duration {
        match self {
            // Readers and the writer wait only during recovery of the log.
            Self::Wal => Duration::from_secs(10),
            Self::Rollback => Duration::from_secs(LONGEST_READ.as_secs() + 10),
        }
    }

    /// The statements that set it up. The write-ahead log is written into the file every 16 MiB, and cut when a reader made it grow longer.
    /// A rollback journal is truncated instead of removed: that changes no folder, which is slow on such file systems.
    pub(super) const fn statements(self) -> &'static str {
        match self {
            Self::Wal => "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;",
            Self::Rollback => "PRAGMA journal_mode = TRUNCATE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_get_a_rollback_journal() {
        for (magic, name) in
            [(0x6969, "NFS"), (0x0bd0_0bd0, "Lustre"), (0x1983_0326, "BeeGFS"), (0x4750_4653, "GPFS"), (0x6573_5546, "FUSE")]
        {
            assert_eq!((network_name(magic), choose(None, magic)), (Some(name), Ok(Journal::Rollback)));
        }
        // ext4, xfs, btrfs, tmpfs, overlayfs, ZFS.
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
            assert_eq!((network_name(magic), choose(None, magic)), (None, Ok(Journal::Wal)));
        }
    }

    #[test]
    fn the_variable_decides() {
        assert_eq!(choose(Some("wal"), 0x6969), Ok(Journal::Wal));
        assert_eq!(choose(Some("rollback"), 0xef53), Ok(Journal::Rollback));
        assert_eq!(choose(Some(""), 0xef53), Ok(Journal::Wal));
        assert!(choose(Some("delete"), 0xef53).unwrap_err().contains("write wal or rollback"));
    }
}
