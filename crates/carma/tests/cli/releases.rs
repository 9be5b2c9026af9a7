//! The record of releases: upgrade tests build older versions from these commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use carma_testing::{Missing, need};

/// A file as of a commit, if this clone has it.
fn file_at(commit: &str, path: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("git").arg("-C").arg(root).args(["show", &format!("{commit}:{path}")]).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_released_version_is_recorded_with_its_commit() {
    let releases: BTreeMap<String, String> = toml::from_str(include_str!("../../../../packaging/releases.toml")).unwrap();
    assert!(releases.contains_key("0.1.0"));
    for (version, commit) in releases {
        assert!(commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()), "{version}: {commit}");
        let manifest = need!(file_at(&commit, "Cargo.toml").ok_or_else(|| Missing::Commit(version.clone())));
        assert!(manifest.contains(&format!("version = \"{version}\"")), "{version} is not commit {commit}");
    }
}
