//! The files that access over the network needs: tokens, certificate and key.

mod tls;
mod tokens;

use std::path::{Path, PathBuf};

pub(crate) use tls::acceptor;
pub(crate) use tokens::Tokens;

use crate::configuration::{Configuration, ConfigurationError, Mistake, NetworkConfig, Source};

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableFile {
    /// The key that names it.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl UnusableFile {
    fn new(key: &'static str, path: &Path, reason: &impl ToString) -> Self {
        Self { key, path: path.to_owned(), reason: reason.to_string() }
    }
}

/// The files with which a manager would not start. Files are used only with an address.
pub fn unusable_files(network: &NetworkConfig) -> Vec<UnusableFile> {
    if network.listen.is_none() {
        return Vec::new();
    }
    let tokens = network.tokens.as_deref();
    let tokens = tokens.and_then(|path| Tokens::check(path).err().map(|reason| UnusableFile::new("manager.network.tokens", path, &reason)));
    let pair = network.certificate.as_deref().zip(network.key.as_deref());
    tokens.into_iter().chain(pair.and_then(|(certificate, key)| acceptor(certificate, key).err())).collect()
}

/// Reads a configuration, and the files that it names, as a manager that starts does: finds all mistakes, and all unknown users and groups.
pub fn read_with_files(path: &Path) -> Result<Configuration, ConfigurationError> {
    let (configuration, mut mistakes) = Configuration::read_all(path)?;
    let line = |key: &str| if let Some(Source::Line(line)) = configuration.given.get(key) { *line } else { 0 };
    let unusable = unusable_files(&configuration.manager.network).into_iter();
    mistakes.extend(unusable.map(|UnusableFile { key, path, reason }| Mistake {
        line: line(key),
        text: format!("{key}: {} cannot be used: {reason}", path.display()),
    }));
    if mistakes.is_empty() {
        return Ok(configuration);
    }
    // Whoever corrects the file wants to know everything.
    mistakes.extend(configuration.warnings);
    mistakes.sort();
    mistakes.dedup();
    Err(ConfigurationError::Wrong { path: path.to_owned(), mistakes })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn mistakes_in_the_file_and_in_the_files_that_it_names_are_found_together() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let network = format!(
            "[manager.network]\nlisten = \"127.0.0.1:0\"\ntokens = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
            at("tokens"),
            at("certificate"),
            at("key")
        );
        let text = format!("policy = \"best\"\n[manager]\noperators = \"no-such-group\"\n{network}");
        let path = folder.path().join("carma.toml");
        fs::write(&path, &text).unwrap();
        let Err(ConfigurationError::Wrong { mistakes, .. }) = read_with_files(&path) else { panic!("it has mistakes") };
        assert_eq!(mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [1, 3, 6, 7], "{mistakes:?}");
        fs::write(&path, text.replace("listen", "# listen")).unwrap();
        let Err(ConfigurationError::Wrong { mistakes, .. }) = read_with_files(&path) else { panic!("it has mistakes") };
        assert!(
            mistakes.iter().all(|mistake| !mistake.text.contains("cannot be used")),
            "without an address, no file is used: {mistakes:?}"
        );
        fs::write(&path, "").unwrap();
        assert!(read_with_files(&path).is_ok());
    }

    #[test]
    fn a_bad_line_of_the_tokens_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        fs::write(&tokens, "ada 1234\n").unwrap();
        fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
        let listen = "127.0.0.1:0".parse().ok();
        let network = NetworkConfig { listen, tokens: Some(tokens), ..NetworkConfig::default() };
        let [unusable] = unusable_files(&network).try_into().unwrap();
        assert!(unusable.key == "manager.network.tokens" && unusable.reason.starts_with("line 1: "), "{unusable:?}");
    }
}
