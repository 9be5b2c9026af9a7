//! The manual's pages and the shells' completions.

use std::collections::BTreeSet;
use std::fs;

use crate::{carma, stdout};

#[test]
fn every_command_has_a_page_and_every_page_that_is_named_exists() {
    let folder = tempfile::tempdir().unwrap();
    assert!(carma(&["man", "--output", folder.path().to_str().unwrap()]).status.success());
    let pages: BTreeSet<String> =
        fs::read_dir(folder.path()).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    assert!(pages.contains("carma.1") && pages.contains("carma-emu-train.1") && !pages.contains("carma-shim.1"), "{pages:?}");
    for page in &pages {
        let text = fs::read_to_string(folder.path().join(page)).unwrap();
        let (_, others) = text.rsplit_once("SEE ALSO").unwrap();
        let named = others.split("\\fB").skip(1).map(|name| name.split("\\fR").next().unwrap().replace("\\-", "-"));
        let missing: Vec<String> = named.filter(|name| !pages.contains(&format!("{name}.1"))).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}");
    }
    assert_eq!(stdout(&["man"]), fs::read_to_string(folder.path().join("carma.1")).unwrap());
}

#[test]
fn shell_completions_work() {
    for (shell, sign) in [("bash", "complete -F _carma"), ("zsh", "#compdef carma"), ("fish", "complete -c carma")] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains(sign) && script.contains("simulate") && !script.contains("shim"), "{shell}");
    }
    assert!(!carma(&["completions", "cmd.exe"]).status.success());
}
