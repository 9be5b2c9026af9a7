//! What a user who forgot `--` or the interpreter probably meant.

use std::path::Path;

use carma_format::quoted;

/// Words as a shell reads them.
pub(super) fn quoted_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The words after `carma submit` as a command.
pub(super) fn as_command(words: &[String]) -> String {
    format!("to run a program, put -- before it: carma submit -- {}", quoted_words(words))
}

/// The words as arguments of an interpreter.
pub(super) fn with_interpreter(interpreter: &str, words: &[String]) -> String {
    format!("to run it, write: carma submit -- {interpreter} {}", quoted_words(words))
}

/// The interpreter of a program without a `#!` line, by its name.
pub(super) fn missing_interpreter(name: &str, text: &str) -> Option<&'static str> {
    if text.starts_with("#!") {
        return None;
    }
    match Path::new(name).extension()?.to_str()? {
        "py" => Some("python"),
        "sh" | "bash" => Some("bash"),
        "R" => Some("Rscript"),
        "jl" => Some("julia"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_keep_all_words() {
        let words = |text: &[&str]| text.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(as_command(&words(&["python3", "a b.py"])), "to run a program, put -- before it: carma submit -- python3 'a b.py'");
        assert_eq!(with_interpreter("python", &words(&["train.py"])), "to run it, write: carma submit -- python train.py");
        assert_eq!(missing_interpreter("train.py", "import torch\n"), Some("python"));
        assert_eq!([missing_interpreter("train.py", "#!/usr/bin/python3\n"), missing_interpreter("train", "true")], [None, None]);
    }
}
