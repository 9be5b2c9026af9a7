//! Logs as readable lines: no colours, one line per state of a progress bar, and the process that printed it.

/// Bytes read at the end of a log, which takes some milliseconds.
pub(super) const TAIL: usize = 64 * 1024;

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The process that printed it, if a launcher puts that before each line; empty otherwise.
    pub process: &'a str,
    /// The rest of the line.
    pub text: &'a str,
}

/// The end of a log as plain text.
pub(crate) fn plain(log: &[u8]) -> String {
    let tail = &log[log.len().saturating_sub(TAIL)..];
    let text = String::from_utf8_lossy(tail);
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => match letters.next() {
                // A control sequence ends with a byte from `@` to `~`.
                Some('[') => while letters.next().is_some_and(|letter| !('@'..='~').contains(&letter)) {},
                // A terminal command, as for a title or a link, ends with a bell or an escaped backslash.
                Some(']') => {
                    while letters.next_if(|letter| !matches!(letter, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
                    if letters.next_if(|letter| *letter != '\n') == Some('\u{1b}') {
                        letters.next_if_eq(&'\\');
                    }
                }
                _ => {}
            },
            '\r' => plain.push('\n'),
            letter => plain.push(letter),
        }
    }
    plain
}

/// The lines that are not blank.
pub(super) fn lines(plain: &str) -> impl Iterator<Item = Line<'_>> {
    plain.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let (process, text) = process(line);
        Line { process, text: without_level(text).trim_end() }
    })
}

/// Splits the prefix that launchers put before each line from the line.
fn process(line: &str) -> (&str, &str) {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ends_with_rank = |text: &str| {
        let name = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        name.len() < text.len() && ["rank", "default"].contains(&name)
    };
    let end = if let Some(inner) = line.strip_prefix('[') {
        // PyTorch: "[rank0]: ", torchrun: "[default0]:", mpirun: "[1,0]<stderr>:".
        inner.split_once(']').and_then(|(name, rest)| {
            let of_mpi = name.split(',').all(digits) && rest.starts_with("<std");
            let start = if of_mpi { rest.find(':')? } else { rest.strip_prefix(':').filter(|_| ends_with_rank(name)).map(|_| 0)? };
            Some(1 + name.len() + 1 + start + 1)
        })
    } else if line.starts_with('(') {
        // Ray and vLLM: "(RayTrainWorker pid=1234, ip=10.0.0.1) ".
        line.find(") ").filter(|end| line[..*end].contains("pid=")).map(|end| end + 1)
    } else {
        // srun -l: "3: ".
        line.find(": ").filter(|end| digits(line[..*end].trim_start())).map(|end| end + 1)
    };
    let (process, text) = line.split_at(end.unwrap_or(0));
    if process.is_empty() { (process, text) } else { (process, text.strip_prefix(' ').unwrap_or(text)) }
}

/// The text without the prefix of vLLM's logger: "ERROR 07-12 10:00:00 [core.py:586] ".
fn without_level(text: &str) -> &str {
    let logged = text.strip_prefix("ERROR ").or_else(|| text.strip_prefix("CRITICAL "));
    logged.and_then(|rest| rest.split_once("] ")).filter(|(before, _)| before.contains('[')).map_or(text, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Vec<(String, String)> {
        lines(&plain(log.as_bytes())).map(|line| (line.process.to_owned(), line.text.to_owned())).collect()
    }

    #[test]
    fn colours_and_progress_bars_are_removed() {
        let log =
            "\u{1b}[31mValueError\u{1b}[0m: \u{1b}[1;4mx\u{1b}[m\n\r 10%|#  |\r 20%|## |\u{1b}]0;title\u{7}done\u{1b}]8;;http://x\u{1b}\\y";
        let texts: Vec<String> = read(log).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["ValueError: x", " 10%|#  |", " 20%|## |doney"]);
    }

    #[test]
    fn prefixes_of_launchers_name_the_process() {
        for (line, process, text) in [
            ("[rank1]: ValueError: x", "[rank1]:", "ValueError: x"),
            ("[default0]:    x = 1", "[default0]:", "   x = 1"),
            ("[1,3]<stderr>:MemoryError", "[1,3]<stderr>:", "MemoryError"),
            ("2: loss 0.1", "2:", "loss 0.1"),
            ("(EngineCore_0 pid=77) ERROR 07-12 10:00:00 [core.py:586] OSError: x", "(EngineCore_0 pid=77)", "OSError: x"),
            ("[epoch 3]: loss", "", "[epoch 3]: loss"),
            ("[] x", "", "[] x"),
            ("(a) b", "", "(a) b"),
            ("ERROR no bracket] here", "", "ERROR no bracket] here"),
        ] {
            assert_eq!(read(line), [(process.to_owned(), text.to_owned())], "{line}");
        }
    }
}
