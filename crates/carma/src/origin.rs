//! Where the figures of a report come from: version, command, settings, estimator and seeds.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use carma_core::Settings;
use carma_sim::{Input, Origin};

use crate::units::quoted;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command line, so that it can be repeated.
pub(crate) fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word).into_owned());
    ["carma".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Version, command and files of a result. Each file has a role, such as `trace`.
pub(crate) fn origin<'a>(files: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<Origin> {
    let input = |(role, file): (&str, &Path)| Input::of(role, file).with_context(|| format!("cannot read {} again", file.display()));
    let inputs = files.into_iter().map(input).collect::<Result<_>>()?;
    Ok(Origin { carma: VERSION.to_owned(), command: command(), inputs, ..Origin::default() })
}

/// Prints the origin at the end of a page of text.
pub(crate) fn print(origin: &Origin, output: &mut impl Write) -> Result<()> {
    writeln!(output)?;
    origin.lines().iter().try_for_each(|line| Ok(writeln!(output, "{}", sentence(line))?))
}

/// The text with a capital letter.
pub(crate) fn sentence(line: &str) -> String {
    let mut letters = line.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Comments at the start of a file.
pub(crate) fn comments(origin: &Origin) -> String {
    // A command may have line breaks.
    let lines: Vec<String> = origin.lines().iter().flat_map(|line| line.lines()).map(|line| format!("# {line}\n")).collect();
    lines.concat()
}

/// Settings on one line: preset and policy, also where they are defaults, and what differs from the preset.
pub(crate) fn settings_in_a_line(settings: &Settings) -> Result<String> {
    let config = settings.check()?;
    let named = Settings { preset: Some(config.preset), policy: Some(config.mapping.to_string()), ..settings.clone() };
    Ok(serde_json::to_string(&named)?)
}

/// Seeds in words: `0`, `0 to 4`.
pub(crate) fn seeds_in_words(count: u64, shuffled: u64) -> String {
    let seeds = if count == 1 { "0".to_owned() } else { format!("0 to {}", count.saturating_sub(1)) };
    match shuffled {
        0 => seeds,
        1 => format!("{seeds}, and again with the jobs in the random order 1"),
        last => format!("{seeds}, and again with the jobs in the random orders 1 to {last}"),
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Preset;

    use super::*;

    #[test]
    fn defaults_of_preset_and_policy_are_named() {
        assert_eq!(settings_in_a_line(&Settings::default()).unwrap(), r#"{"preset":"carma","policy":"carma"}"#);
        let given = Settings { preset: Some(Preset::Aegis), policy: Some("magm".to_owned()), ..Settings::default() };
        assert_eq!(settings_in_a_line(&given).unwrap(), r#"{"preset":"aegis","policy":"magm"}"#);
    }

    #[test]
    fn seeds_are_a_range() {
        assert_eq!([seeds_in_words(1, 0), seeds_in_words(5, 0)], ["0", "0 to 4"]);
        assert_eq!(seeds_in_words(2, 3), "0 to 1, and again with the jobs in the random orders 1 to 3");
    }
}
