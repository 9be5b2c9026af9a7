//! The script that Slurm gets: the user's own, with a few lines before it that start it under `carma sbatch-run`.
//!
//! Slurm keeps a copy of it, so a later change of the user's file changes nothing, as with sbatch itself.

use std::path::Path;

use anyhow::{Result, ensure};

use super::site::ShardedGpu;
use crate::units::quoted;

/// The line before the user's script. No user writes it: it has a number of its own.
const MARK: &str = "#carma-script";

/// What the wrapper in the job needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recovery {
    /// The shards of a GPU.
    pub(super) gpu: ShardedGpu,
    /// How often it may be restarted.
    pub(super) retries: u32,
}

/// A script as sbatch takes it.
pub(super) fn check(name: &str, text: &[u8]) -> Result<()> {
    ensure!(text.starts_with(b"#!"), "{name} is not a batch script: its first line must name the interpreter, as in #!/bin/bash");
    Ok(())
}

/// The script for Slurm. `carma` is this program as the nodes see it.
pub(super) fn wrapped(script: &[u8], carma: &Path, recovery: Recovery) -> Vec<u8> {
    let mark = free_mark(script);
    let Recovery { gpu: ShardedGpu { shards, memory }, retries } = recovery;
    let program = carma.to_string_lossy();
    let program = quoted(&program);
    let mut text = b"#!/bin/sh\n".to_vec();
    // sbatch reads options up to the first command only.
    for line in header(script).skip(1) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let lines = format!(
        "# Runs the script below, and asks Slurm for more shards if it runs out of GPU memory.\n\
         carma={program}\n\
         if [ -x \"$carma\" ]; then\n    \
             exec \"$carma\" sbatch-run --mark {mark} --shards-of-gpu {shards} --gpu-memory {}MiB --oom-retries {retries} -- \"$0\" \"$@\"\n\
         fi\n\
         echo \"[carma: $carma is not on this node: the script runs without it]\" >&2\n\
         script=$(mktemp) && sed '1,/^{MARK} {mark}$/d' \"$0\" > \"$script\" && exec {} \"$script\" \"$@\"\n\
         exit 1\n\
         {MARK} {mark}\n",
        memory.0,
        interpreter(script).iter().map(|word| quoted(word).into_owned()).collect::<Vec<_>>().join(" "),
    );
    text.extend_from_slice(lines.as_bytes());
    text.extend_from_slice(script);
    text
}

/// The user's script in that of Slurm.
pub(super) fn unwrapped(text: &[u8], mark: u32) -> Option<&[u8]> {
    let line = format!("\n{MARK} {mark}\n");
    let place = text.windows(line.len()).position(|window| window == line.as_bytes())?;
    Some(&text[place + line.len()..])
}

/// The interpreter of a script, with its argument: the kernel takes all of it as one.
pub(super) fn interpreter(script: &[u8]) -> Vec<String> {
    let first = script.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(first).trim_start_matches("#!").trim().to_owned();
    let (program, argument) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    [program, argument.trim()].into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The lines before the first command.
fn header(script: &[u8]) -> impl Iterator<Item = &[u8]> {
    script.split(|byte| *byte == b'\n').take_while(|line| line.trim_ascii().is_empty() || line.starts_with(b"#"))
}

/// A number that the script does not have behind a mark, such as that of a wrapped script.
fn free_mark(script: &[u8]) -> u32 {
    (1..u32::MAX).find(|mark| unwrapped(script, *mark).is_none()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECOVERY: Recovery = Recovery { gpu: ShardedGpu { shards: 40, memory: carma_core::MiB(40_960) }, retries: 3 };

    #[test]
    fn a_wrapped_script_is_unchanged() {
        let script = b"#!/bin/bash -l\n#SBATCH --time=5\n\n# why\n#SBATCH -p gpu\npython train.py \xff\n#SBATCH --late\nno newline at end";
        let text = wrapped(script, "/opt/my tools/carma".as_ref(), RECOVERY);
        assert_eq!(unwrapped(&text, 1).unwrap(), script);
        insta::assert_snapshot!("wrapped", String::from_utf8_lossy(&text));
        let again = wrapped(&text, "/carma".as_ref(), RECOVERY);
        assert_eq!(unwrapped(&again, 2).unwrap(), text, "a script with such a mark is no problem");
        assert_eq!(unwrapped(b"#!/bin/sh\n", 1), None);
    }

    #[test]
    fn a_node_without_carma_runs_the_script() {
        let script =
            wrapped(b"#!/bin/bash -u\necho \"$# $1 $BASH_VERSION\" | cut -c 1-6\nexit 5\n", "/nonexistent/carma".as_ref(), RECOVERY);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, script).unwrap();
        let output = std::process::Command::new("sh").arg(file).args(["a b", "c"]).env("TMPDIR", folder.path()).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(5), "2 a b \n"));
        let said = "[carma: /nonexistent/carma is not on this node: the script runs without it]\n";
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    }

    #[test]
    fn interpreters_are_read_as_the_kernel_does() {
        assert_eq!(interpreter(b"#!/bin/bash -l -x\n"), ["/bin/bash", "-l -x"]);
        assert_eq!(interpreter(b"#! /usr/bin/env\tpython3"), ["/usr/bin/env", "python3"]);
        assert!(check("a", b"#!/bin/sh\n").is_ok() && check("a", b"echo\n").is_err());
    }
}
