//! Names that a report must not have: of the user, the home and the host.

use std::env;

/// Shorter names are parts of ordinary words.
const SHORTEST: usize = 3;

/// Names of this machine, each with what stands for it.
pub(super) fn of_this_machine() -> Vec<(String, &'static str)> {
    let variable = |name| env::var(name).unwrap_or_default();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    vec![(variable("HOME"), "~"), (variable("USER"), "USER"), (variable("LOGNAME"), "USER"), (host, "HOST")]
}

/// The text without these names, where they are whole words.
pub(super) fn left_out(text: &str, names: &[(String, &'static str)]) -> String {
    let wanted = names.iter().filter(|(name, _)| name.len() >= SHORTEST && name != "root");
    wanted.fold(text.to_owned(), |text, (name, word)| replaced(&text, name, word))
}

fn replaced(text: &str, name: &str, word: &str) -> String {
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut result, mut rest) = (String::new(), text);
    while let Some(place) = rest.find(name) {
        let (before, after) = (&rest[..place], &rest[place + name.len()..]);
        let whole = !is_part(before.chars().next_back().or_else(|| result.chars().next_back())) && !is_part(after.chars().next());
        result.push_str(before);
        result.push_str(if whole { word } else { name });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_where_they_are_whole_words() {
        let names =
            [("/home/ada".to_owned(), "~"), ("ada".to_owned(), "USER"), ("gn01.example".to_owned(), "HOST"), ("g".to_owned(), "HOST")];
        let text = "the store /home/ada/.local of ada on gn01.example: adaptive, going";
        assert_eq!(left_out(text, &names), "the store ~/.local of USER on HOST: adaptive, going");
        assert_eq!(left_out("root", &[("root".to_owned(), "USER")]), "root");
    }
}
