//! What decides what a dry run records, apart from files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Variables that differ between jobs and sessions, and say nothing about a script's memory.
const IGNORED_VARIABLES: [&str; 21] = [
    "CARMA_ARRAY_ID",
    "CARMA_ATTEMPT",
    "CARMA_JOB_ID",
    "CARMA_PROGRESS",
    "COLUMNS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_JOBID",
    "SLURM_JOB_ID",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "TERM",
    "TMPDIR",
    "XDG_SESSION_ID",
    "_",
];

/// A dry run to do. Two equal requests record the same events if the files are the same too.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The arguments of the recorder: its options, the script and the script's arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The working folder.
    pub(crate) folder: PathBuf,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The interpreter, without links.
    pub(crate) interpreter: PathBuf,
    /// Which version of the recorder it is.
    pub(crate) recorder: String,
}

impl Request {
    /// The name under which its events are kept.
    pub(super) fn key(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(self.recorder.as_bytes());
        add(self.interpreter.as_os_str().as_bytes());
        // Another version of Python has another size or date.
        if let Ok(metadata) = fs::metadata(&self.interpreter) {
            add(format!("{} {:?}", metadata.len(), metadata.modified().ok()).as_bytes());
        }
        add(self.folder.as_os_str().as_bytes());
        add(&(self.arguments.len() as u64).to_le_bytes());
        self.arguments.iter().for_each(|word| add(word.as_bytes()));
        for (name, value) in self.environment.iter().filter(|(name, _)| !IGNORED_VARIABLES.iter().any(|left_out| name == left_out)) {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        format!("{:x}", hash.finalize())
    }
}

/// The interpreter that a name stands for, without links.
pub(crate) fn resolved(interpreter: &Path) -> PathBuf {
    let found = carma_gpu::find_program(interpreter).unwrap_or_else(|| interpreter.to_path_buf());
    // The folder of an environment decides which packages there are, so only the links of the folder are followed.
    let folder = found.parent().and_then(|folder| folder.canonicalize().ok());
    folder.and_then(|folder| Some(folder.join(found.file_name()?))).unwrap_or(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            arguments: ["--devices", "1", "--", "train.py", "--batch-size", "32"].map(Into::into).to_vec(),
            folder: "/home/ada/training".into(),
            environment: BTreeMap::from([("LAYERS".into(), "12".into()), ("CARMA_JOB_ID".into(), "7".into())]),
            interpreter: "/usr/bin/python3".into(),
            recorder: "1".to_owned(),
        }
    }

    fn changed(change: impl FnOnce(&mut Request)) -> bool {
        let mut other = request();
        change(&mut other);
        other.key() != request().key()
    }

    #[test]
    fn every_part_counts() {
        assert!(changed(|request| request.arguments[3] = "other.py".into()), "the script");
        assert!(changed(|request| request.arguments[5] = "64".into()), "an argument");
        assert!(changed(|request| request.arguments[1] = "2".into()), "an option of the recorder");
        assert!(changed(|request| request.arguments[4..6].fill("".into())), "words that are empty");
        assert!(changed(|request| request.folder = "/home/ada".into()), "the folder");
        assert!(changed(|request| drop(request.environment.insert("LAYERS".into(), "24".into()))), "a variable");
        assert!(changed(|request| drop(request.environment.insert("NEW".into(), "".into()))), "a new variable");
        assert!(changed(|request| request.interpreter = "/opt/python/bin/python3".into()), "the interpreter");
        assert!(changed(|request| request.recorder = "2".to_owned()), "the version of the recorder");
    }

    #[test]
    fn another_version_in_the_place_of_the_interpreter_counts() {
        let folder = tempfile::tempdir().unwrap();
        let interpreter = folder.path().join("python3");
        let of = |version: &str| {
            fs::write(&interpreter, version).unwrap();
            Request { interpreter: interpreter.clone(), ..request() }.key()
        };
        assert_ne!(of("3.13"), of("3.13.1"));
    }

    #[test]
    fn the_number_of_a_job_does_not_count() {
        assert!(!changed(|request| drop(request.environment.insert("CARMA_JOB_ID".into(), "8".into()))));
    }
}
