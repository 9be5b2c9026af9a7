//! The systemd unit of the manager: the package's unit, adapted to the program's path and the scope.

use std::path::Path;

use super::Scope;

/// The unit in the Debian package.
const TEMPLATE: &str = include_str!("../../../../packaging/carma.service");

/// First words of the template's paragraphs that a user's manager omits: it has its own paths, and no kernel privileges.
const ROOT_ONLY: &str = "# Only as root";

/// The unit for a program.
pub(super) fn unit(scope: Scope, program: &Path, config: Option<&Path>) -> String {
    let config = config.map(|file| format!(" --config {}", quoted(file).replace('$', "$$"))).unwrap_or_default();
    let start = format!("ExecStart={} up{config}", quoted(program));
    let fitted = |line: &str| match line.split_once('=') {
        Some(("ExecStart", _)) => start.clone(),
        Some(("ExecReload", _)) => format!("ExecReload={} config reload", quoted(program)),
        Some(("WantedBy", _)) => format!("WantedBy={}", scope.target()),
        _ => line.to_owned(),
    };
    let paragraphs = TEMPLATE.trim_end().split("\n\n").filter(|paragraph| scope == Scope::System || !paragraph.starts_with(ROOT_ONLY));
    let paragraphs: Vec<String> = paragraphs.map(|paragraph| paragraph.lines().map(fitted).collect::<Vec<_>>().join("\n")).collect();
    paragraphs.join("\n\n") + "\n"
}

/// A path as one word of a unit. A dollar sign is literal in a program's own path, and has to be doubled elsewhere.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string().replace('%', "%%");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+%$".contains(letter);
    if path.chars().all(plain) { path } else { format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_unit_is_that_of_an_installed_program() {
        assert_eq!(unit(Scope::System, "/usr/bin/carma".as_ref(), None), TEMPLATE);
    }

    #[test]
    fn a_users_unit_has_no_root_only_settings() {
        let unit = unit(Scope::User, "/home/ada/.local/bin/carma".as_ref(), Some("/home/ada/carma.toml".as_ref()));
        insta::assert_snapshot!("user", unit);
    }

    #[test]
    fn special_characters_in_paths_are_quoted() {
        let unit = unit(Scope::System, "/opt/100% \"new\"/$carma".as_ref(), Some("/etc/a b/$x\\.toml".as_ref()));
        let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(start, r#"ExecStart="/opt/100%% \"new\"/$carma" up --config "/etc/a b/$$x\\.toml""#);
    }
}
