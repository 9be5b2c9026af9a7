//! Where figures come from: enough to make them again.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::trace::sha256;

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// The version of CARMA.
    pub carma: String,
    /// The command line.
    pub command: String,
    /// The files that were read.
    pub inputs: Vec<Input>,
    /// The seeds of the runs, in words; empty where nothing is random.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seeds: String,
    /// Each policy, in the order of the table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyOrigin>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// What it holds: `trace`, `estimates`, `catalogue`, ...
    pub role: String,
    /// Its name. Its folder stays private.
    pub file: String,
    /// SHA-256 of its content; unset for a pipe, which can be read only once.
    pub sha256: Option<String>,
}

/// What one policy was run with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PolicyOrigin {
    /// Its name in the table.
    pub name: String,
    /// The source of memory estimates.
    pub estimator: String,
    /// Its settings, as JSON: preset, policy, and what differs from the preset.
    pub settings: String,
}

impl Input {
    /// Names a file by its content.
    pub fn of(role: &str, path: &Path) -> io::Result<Self> {
        let sha256 = if path.metadata()?.is_file() { Some(sha256(path)?) } else { None };
        Ok(Self { role: role.to_owned(), file: path.file_name().unwrap_or_default().display().to_string(), sha256 })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.sha256.as_ref().map_or_else(|| "a pipe".to_owned(), |digest| format!("SHA-256 {digest}"));
        write!(f, "{} {}, {digest}", self.role, self.file)
    }
}

impl Origin {
    /// The files in one text, for a cell of a table.
    pub fn inputs_in_words(&self) -> String {
        self.inputs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Lines for the end of a page of text, or for comments at the start of a file.
    pub fn lines(&self) -> Vec<String> {
        let made = format!("made by carma {} with: {}", self.carma, self.command);
        let seeds = (!self.seeds.is_empty()).then(|| format!("seeds: {}", self.seeds));
        let inputs = self.inputs.iter().map(|input| format!("from {input}"));
        std::iter::once(made).chain(inputs).chain(seeds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_content_and_not_by_its_folder() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/carma.sh");
        let input = Input::of("trace", &file).unwrap();
        assert_eq!((input.file.as_str(), input.sha256.as_ref().unwrap().len()), ("carma.sh", 64));
        assert!(Input::of("trace", Path::new("/dev/null")).unwrap().to_string().ends_with("null, a pipe"));
        assert!(Input::of("trace", Path::new("/nonexistent")).is_err());
        let origin = Origin { carma: "1".to_owned(), command: "carma".to_owned(), inputs: vec![input], ..Origin::default() };
        let lines = origin.lines();
        assert!(lines[0] == "made by carma 1 with: carma" && lines[1].starts_with("from trace carma.sh, SHA-256 "), "{lines:?}");
    }
}
