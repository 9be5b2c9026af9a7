//! The findings about who may read and change the manager's files. Pure.

use std::path::PathBuf;

use super::findings::{Finding, Health, finding};

/// A file or folder of the manager that exists.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) owner: u32,
    pub(super) mode: u32,
}

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The state folder. Jobs of other users traverse it.
    State,
    /// The socket of the API.
    Socket,
    /// The configuration file.
    Configuration,
    /// What only the manager may read: jobs' environments, keys, tokens.
    Secret,
}

/// What is known about permissions.
#[derive(Debug)]
pub(super) struct Permissions {
    pub(super) entries: Vec<Entry>,
    /// The user that the manager runs as, or would run as.
    pub(super) owner: u32,
    /// The group of operators, and whether this host has it. Empty: there are none.
    pub(super) operators: (String, bool),
}

/// All findings about permissions.
pub(super) fn findings(facts: &Permissions) -> Vec<Finding> {
    let wrong: Vec<Finding> = facts.entries.iter().flat_map(|entry| about(entry, facts.owner)).collect();
    let mut all = wrong;
    if all.is_empty() && !facts.entries.is_empty() {
        let says = "the state folder, the socket and the secrets have the right owners and modes";
        all.push(finding(Health::Ok, says, None));
    }
    let (name, exists) = &facts.operators;
    // Only a manager of root has other users.
    if facts.owner == 0 && !name.is_empty() {
        all.push(if *exists {
            finding(Health::Ok, format!("members of group {name} may manage all jobs (manager.operators)"), None)
        } else {
            let fix = format!("groupadd {name}, then usermod -aG {name} USER for each operator");
            finding(
                Health::Note,
                format!("this host has no group {name} (manager.operators): only root manages jobs of others"),
                Some(&fix),
            )
        });
    }
    all
}

fn about(entry: &Entry, owner: u32) -> Vec<Finding> {
    let Entry { path, kind, owner: actual, mode } = entry;
    let (path, mode) = (path.display(), mode & 0o777);
    let mut all = Vec::new();
    let trusted = *actual == owner || (*kind == Kind::Configuration && *actual == 0);
    if !trusted {
        let says = format!("{path} belongs to user {actual}, but the manager runs as user {owner}");
        all.push(finding(Health::Error, says, Some(&format!("chown {owner} {path}, or run the manager as that user"))));
    }
    let mut wrong = |health, says: &str, fix: &str| {
        all.push(finding(health, format!("{path} {says} (mode {mode:04o})"), Some(&format!("{fix} {path}"))));
    };
    match kind {
        Kind::State if mode & 0o022 != 0 => wrong(Health::Error, "can be changed by others", "chmod go-w"),
        Kind::State if mode & 0o044 != 0 => wrong(Health::Warning, "can be listed by others", "chmod go-r"),
        Kind::State if owner == 0 && mode & 0o011 == 0 => {
            wrong(Health::Note, "cannot be traversed by jobs of other users; the manager corrects that when it runs one:", "chmod go+x");
        }
        Kind::Socket if owner == 0 && mode & 0o006 != 0o006 => {
            wrong(Health::Error, "cannot be used by other users", "restart the manager, or chmod 666");
        }
        Kind::Socket if owner != 0 && mode & 0o022 != 0 => {
            wrong(Health::Warning, "can be used by others, whom the manager refuses", "chmod 600");
        }
        Kind::Configuration if mode & 0o022 != 0 => wrong(Health::Error, "can be changed by others, who then set the rules", "chmod go-w"),
        Kind::Secret if mode & 0o077 != 0 => wrong(Health::Error, "holds secrets that others can read", "chmod 600"),
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(owner: u32, entries: &[(Kind, u32, u32)]) -> Vec<(Health, String)> {
        let entry = |(kind, owner, mode): &(Kind, u32, u32)| Entry { path: "/x".into(), kind: *kind, owner: *owner, mode: *mode };
        let facts = Permissions { entries: entries.iter().map(entry).collect(), owner, operators: (String::new(), false) };
        findings(&facts).into_iter().map(|finding| (finding.health, finding.fix.unwrap_or_default())).collect()
    }

    #[test]
    fn what_the_manager_creates_is_right() {
        use Kind::{Configuration, Secret, Socket, State};
        let of_root = [(State, 0, 0o40_711), (Socket, 0, 0o140_666), (Configuration, 0, 0o100_644), (Secret, 0, 0o100_600)];
        assert_eq!(found(0, &of_root), [(Health::Ok, String::new())]);
        let of_a_user = [(State, 1000, 0o700), (Socket, 1000, 0o600), (Configuration, 1000, 0o644), (Secret, 1000, 0o600)];
        assert_eq!(found(1000, &of_a_user), [(Health::Ok, String::new())]);
        assert_eq!(found(1000, &[]), [], "nothing is there yet");
    }

    #[test]
    fn each_wrong_mode_has_its_command() {
        let one = |owner, kind, mode| found(owner, &[(kind, owner, mode)]).remove(0);
        assert_eq!(one(0, Kind::State, 0o777), (Health::Error, "chmod go-w /x".to_owned()));
        assert_eq!(one(0, Kind::State, 0o755), (Health::Warning, "chmod go-r /x".to_owned()));
        assert_eq!(one(0, Kind::Socket, 0o600).0, Health::Error);
        assert_eq!(one(1000, Kind::Socket, 0o666).0, Health::Warning);
        assert_eq!(one(0, Kind::Configuration, 0o664), (Health::Error, "chmod go-w /x".to_owned()));
        assert_eq!(one(0, Kind::Secret, 0o640), (Health::Error, "chmod 600 /x".to_owned()));
    }

    #[test]
    fn files_of_another_user_are_errors_unless_root_wrote_the_configuration() {
        assert_eq!(found(1000, &[(Kind::State, 0, 0o700)])[0].0, Health::Error);
        assert_eq!(found(1000, &[(Kind::Configuration, 0, 0o644)])[0].0, Health::Ok);
    }

    #[test]
    fn a_group_of_operators_that_does_not_exist_is_said_to_root() {
        let facts = |owner, exists| Permissions { entries: Vec::new(), owner, operators: ("carma".to_owned(), exists) };
        assert_eq!(findings(&facts(0, false))[0].health, Health::Note);
        assert_eq!(findings(&facts(0, true))[0].health, Health::Ok);
        assert_eq!(findings(&facts(1000, false)), []);
    }
}
