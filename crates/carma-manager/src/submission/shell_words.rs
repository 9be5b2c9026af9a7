//! Words of a line as a shell would split them, with nothing else of a shell's done: no variables, no commands, no patterns.

use super::error::Problem;

/// Splits at blanks outside of quotes; a word that begins with `#` ends the line.
pub(super) fn split(line: &str) -> Result<Vec<String>, Problem> {
    shlex::split(line).ok_or_else(|| Problem::Refused("a quote is not closed, or nothing follows the last \\".to_owned()))
}

/// Splits a command that was written for a shell, unless it needs one.
pub(super) fn split_command(line: &str) -> Result<Vec<String>, Problem> {
    match line.chars().find(|letter| "$`;|&<>()*?~\\".contains(*letter)) {
        Some(special) => Err(Problem::Refused(format!("{special:?} needs a shell: put the command into a script"))),
        None => split(line),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{split, split_command};

    #[test]
    fn quotes_hold_words_together_and_a_hash_ends_the_line() {
        assert_eq!(split(r#"--name 'a b' -o "x \"y\" z"w\ v '' # rest"#).unwrap(), ["--name", "a b", "-o", "x \"y\" zw v", ""]);
        assert_eq!(split("--name a#b $(id) `id` ; x").unwrap(), ["--name", "a#b", "$(id)", "`id`", ";", "x"]);
        assert!(["'a", "\"a", "a\\", "\"a\\"].iter().all(|line| split(line).is_err()));
    }

    #[test]
    fn a_command_that_needs_a_shell_is_refused() {
        assert_eq!(split_command("python train.py --name 'a b'").unwrap(), ["python", "train.py", "--name", "a b"]);
        for line in ["a; b", "a && b", "a | b", "a > b", "a $HOME", "a `b`", "a $(b)", "a *", "(a)", "~/a"] {
            assert!(split_command(line).unwrap_err().to_string().contains("put the command into a script"), "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_read_back(words in prop::collection::vec("[^']*", 0..5)) {
            let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&line).unwrap(), words);
        }
    }
}
