//! Options of sbatch, on its command line and in `#SBATCH` lines.

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OptionValue {
    /// Its long name, without dashes; the letter of a short one that matters nowhere here.
    pub(super) name: String,
    /// Its value, if it has one.
    pub(super) value: Option<String>,
    /// The words that it was given by.
    pub(super) words: Vec<String>,
}

/// A command line of sbatch up to its script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Its options.
    pub(super) options: Vec<OptionValue>,
    /// The script and its arguments.
    pub(super) rest: Vec<String>,
}

/// Options without a value, or with one only after `=`. All others have a value: new versions of Slurm add few without.
const SWITCHES: [&str; 23] = [
    "contiguous",
    "exclusive",
    "get-user-env",
    "help",
    "hold",
    "ignore-pbs",
    "nice",
    "no-kill",
    "no-requeue",
    "overcommit",
    "oversubscribe",
    "parsable",
    "propagate",
    "quiet",
    "reboot",
    "requeue",
    "spread-job",
    "test-only",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
    "wait",
];
/// The same by their letters.
const SWITCH_LETTERS: &str = "HhkOQsvVW";
/// Those that may have a value in the same word.
const OPTIONAL_LETTERS: &str = "ks";
/// Letters of options that matter here.
const LETTERS: [(char, &str); 6] = [('G', "gpus"), ('N', "nodes"), ('o', "output"), ('p', "partition"), ('Q', "quiet"), ('M', "clusters")];

impl Line {
    /// Reads options until a word that is none, as sbatch does. `own` tells of options of ours whether they have a value.
    pub(super) fn read(words: &[String], own: impl Fn(&str) -> Option<bool>) -> Self {
        let mut line = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            let given = match word.strip_prefix("--") {
                Some(long) => {
                    let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
                    let valued = own(name).unwrap_or(!SWITCHES.contains(&name));
                    OptionValue { name: name.to_owned(), value: attached, words: vec![word.clone()] }.or_next(valued, &mut words)
                }
                None if word.len() > 1 && word.starts_with('-') => {
                    let Cluster { switches, letter, attached, valued } = Cluster::of(&word[1..]);
                    line.options.extend(switches.chars().map(|switch| OptionValue {
                        name: name_of(switch),
                        value: None,
                        words: Vec::new(),
                    }));
                    OptionValue { name: name_of(letter), value: attached, words: vec![word.clone()] }.or_next(valued, &mut words)
                }
                _ => {
                    line.rest.push(word.clone());
                    break;
                }
            };
            line.options.push(given);
        }
        line.rest.extend(words.cloned());
        line
    }
}

impl OptionValue {
    /// With the next word as its value, if it has none yet and needs one.
    fn or_next<'a>(mut self, valued: bool, words: &mut impl Iterator<Item = &'a String>) -> Self {
        if valued && self.value.is_none() {
            self.value = words.next().cloned();
            self.words.extend(self.value.clone());
        }
        self
    }
}

/// Short options in one word: switches, and one more letter that may have a value.
struct Cluster<'a> {
    switches: &'a str,
    letter: char,
    attached: Option<String>,
    valued: bool,
}

impl<'a> Cluster<'a> {
    fn of(letters: &'a str) -> Self {
        let ends = |letter: char| !SWITCH_LETTERS.contains(letter) || OPTIONAL_LETTERS.contains(letter);
        let last = letters.char_indices().find(|(_, letter)| ends(*letter)).or_else(|| letters.char_indices().next_back());
        let (place, letter) = last.unwrap_or((0, '-'));
        let after = letters.get(place + letter.len_utf8()..).unwrap_or_default();
        let attached = (!after.is_empty()).then(|| after.to_owned());
        Self { switches: &letters[..place], letter, attached, valued: !SWITCH_LETTERS.contains(letter) }
    }
}

fn name_of(letter: char) -> String {
    LETTERS.iter().find(|(known, _)| *known == letter).map_or_else(|| letter.to_string(), |(_, name)| (*name).to_owned())
}

/// The options in the `#SBATCH` lines of a script: those before its first command.
pub(super) fn of_script(text: &str) -> Vec<OptionValue> {
    let header = text.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#'));
    let lines = header.filter_map(|line| line.strip_prefix("#SBATCH").filter(|rest| rest.starts_with(char::is_whitespace)));
    // A line that sbatch cannot read either is reported by sbatch.
    lines.filter_map(shlex::split).flat_map(|words| Line::read(&words, |_| None).options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// The options and the rest of a line, in short.
    fn read(text: &str) -> (String, String) {
        let line = Line::read(&words(text), |name| (name == "gpu-mem").then_some(true));
        let words: Vec<&str> = line.options.iter().flat_map(|option| &option.words).map(String::as_str).collect();
        assert_eq!(words.join(" "), text.strip_suffix(&line.rest.join(" ")).unwrap().replace(" -- ", " ").trim(), "no word is lost");
        let options = line.options.iter().map(|option| format!("{}={}", option.name, option.value.as_deref().unwrap_or("-")));
        (options.collect::<Vec<_>>().join(" "), line.rest.join(" "))
    }

    #[test]
    fn the_script_is_the_first_word_without_an_option() {
        for (text, options, rest) in [
            ("a.sh -p x", "", "a.sh -p x"),
            ("-p gpu -N2 --time 10 a.sh b", "partition=gpu nodes=2 time=10", "a.sh b"),
            ("--hold --exclusive --exclusive=user a.sh", "hold=- exclusive=- exclusive=user", "a.sh"),
            ("-HQ -HG 2 a.sh", "H=- quiet=- H=- gpus=2", "a.sh"),
            ("--gres=gpu:1 -- a.sh --x", "gres=gpu:1", "a.sh --x"),
            ("--gpu-mem 20GiB -J x a.sh", "gpu-mem=20GiB J=x", "a.sh"),
            ("--unknown value a.sh", "unknown=value", "a.sh"),
            ("-W a.sh", "W=-", "a.sh"),
            ("-Hk -Hkno a.sh", "H=- k=- H=- k=no", "a.sh"),
        ] {
            assert_eq!(read(text), (options.to_owned(), rest.to_owned()), "{text}");
        }
    }

    #[test]
    fn lines_of_a_script_end_with_its_first_command() {
        let script =
            "#!/bin/bash\n# a comment\n\n#SBATCH --gres=gpu:2 -N 1\n#SBATCH\t--mem 4G # why\n#SBATCHx --a=1\necho\n#SBATCH --time=5\n";
        let found: Vec<(String, Option<String>)> = of_script(script).into_iter().map(|option| (option.name, option.value)).collect();
        let expected = [("gres", "gpu:2"), ("nodes", "1"), ("mem", "4G")].map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
        assert_eq!(found, expected);
    }
}
