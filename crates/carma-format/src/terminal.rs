//! What the terminal of this process can show.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::glyphs::Glyphs;

/// Decided once, by [`Terminal::decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Text for a screen reader: no frames, bars or redrawing, and one fact per line.
    pub plain: bool,
    /// Whether colours are allowed where a terminal reads.
    pub colour: bool,
    /// Whether the locale is UTF-8.
    pub unicode: bool,
    /// Standard output.
    pub output: Stream,
    /// Standard error.
    pub errors: Stream,
    /// Unset if unknown.
    pub columns: Option<u16>,
}

/// Where a stream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A terminal on which the cursor may be moved.
    Screen,
    /// A terminal that gets lines only.
    Lines,
    /// A file or another program.
    File,
}

/// What a decision depends on.
#[allow(missing_debug_implementations, reason = "it has a function")]
pub struct Surroundings<'a> {
    /// Whether `--plain` is given.
    pub plain: bool,
    /// An environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether standard output is a terminal.
    pub output_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub errors_are_terminal: bool,
    /// 0 if the terminal does not know.
    pub columns: Option<u16>,
}

static CURRENT: OnceLock<Terminal> = OnceLock::new();
thread_local! {
    static REPLACED: Cell<Option<Terminal>> = const { Cell::new(None) };
}

impl Terminal {
    /// Before a decision: the text that a file gets.
    pub const UNKNOWN: Self =
        Self { plain: false, colour: false, unicode: true, output: Stream::File, errors: Stream::File, columns: None };

    /// What is used, by what the user asked for and what the terminal says it is.
    pub fn decide(surroundings: &Surroundings<'_>) -> Self {
        let set = |name: &str| (surroundings.variable)(name).filter(|value| !value.is_empty());
        let plain = surroundings.plain || set("CARMA_PLAIN").is_some_and(|value| value != "0");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_lowercase();
        let dumb = set("TERM").is_none_or(|kind| kind == "dumb");
        let stream = |is_terminal| match (is_terminal, plain || dumb) {
            (true, false) => Stream::Screen,
            (true, true) => Stream::Lines,
            (false, _) => Stream::File,
        };
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        Self {
            plain,
            colour: !plain && set("NO_COLOR").is_none() && (forced || !dumb),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            output: stream(surroundings.output_is_terminal),
            errors: stream(surroundings.errors_are_terminal),
            columns: surroundings.columns.filter(|columns| *columns > 0),
        }
    }

    /// Makes this the terminal of the process. A process has one, so tables, texts and progress read it from here.
    pub fn install(self) {
        // The first decision stays.
        let _ = CURRENT.set(self);
    }

    /// The terminal of the process.
    pub fn current() -> Self {
        REPLACED.get().or_else(|| CURRENT.get().copied()).unwrap_or(Self::UNKNOWN)
    }

    /// Runs something in this thread with this terminal instead.
    pub fn replaced<R>(self, run: impl FnOnce() -> R) -> R {
        let before = REPLACED.replace(Some(self));
        let result = run();
        REPLACED.set(before);
        result
    }

    /// The characters of its locale.
    pub const fn glyphs(self) -> &'static Glyphs {
        if self.unicode { &Glyphs::UNICODE } else { &Glyphs::ASCII }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF_8: (&str, &str) = ("LANG", "en_US.UTF-8");
    const XTERM: (&str, &str) = ("TERM", "xterm");

    /// On a terminal of 80 columns with these variables.
    fn decided(plain: bool, variables: &[(&str, &str)]) -> Terminal {
        let variable = |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        let surroundings =
            Surroundings { plain, variable: &variable, output_is_terminal: true, errors_are_terminal: true, columns: Some(80) };
        Terminal::decide(&surroundings)
    }

    #[test]
    fn a_usual_terminal_can_do_everything() {
        let everything =
            Terminal { plain: false, colour: true, unicode: true, output: Stream::Screen, errors: Stream::Screen, columns: Some(80) };
        assert_eq!(decided(false, &[UTF_8, XTERM]), everything);
        let ignored = [UTF_8, XTERM, ("NO_COLOR", ""), ("CARMA_PLAIN", ""), ("LC_ALL", "")];
        assert_eq!(decided(false, &ignored), everything, "empty variables are as if they were unset");
        assert_eq!(decided(false, &[UTF_8, XTERM, ("CARMA_PLAIN", "0")]), everything);
    }

    #[test]
    fn plain_text_has_neither_colours_nor_redrawing() {
        for plain in [decided(true, &[UTF_8, XTERM]), decided(false, &[UTF_8, XTERM, ("CARMA_PLAIN", "1"), ("CLICOLOR_FORCE", "1")])] {
            assert!(plain.plain && !plain.colour && plain.unicode, "{plain:?}");
            assert_eq!([plain.output, plain.errors], [Stream::Lines; 2]);
        }
    }

    #[test]
    fn colours_need_a_terminal_that_has_them_and_a_user_who_wants_them() {
        assert!(!decided(false, &[XTERM, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).colour);
        assert_eq!([decided(false, &[("TERM", "dumb")]).colour, decided(false, &[]).colour], [false; 2]);
        assert!(decided(false, &[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")]).colour);
    }

    #[test]
    fn a_dumb_terminal_gets_lines_and_a_file_stays_a_file() {
        for variables in [&[("TERM", "dumb")][..], &[("TERM", "")], &[]] {
            assert_eq!(decided(false, variables).output, Stream::Lines);
        }
        let xterm = |name: &str| (name == "TERM").then(|| "xterm".to_owned());
        let piped = Surroundings { plain: false, variable: &xterm, output_is_terminal: false, errors_are_terminal: true, columns: Some(0) };
        let piped = Terminal::decide(&piped);
        assert_eq!((piped.output, piped.errors, piped.columns), (Stream::File, Stream::Screen, None));
    }

    #[test]
    fn the_first_variable_of_the_locale_that_is_set_decides() {
        let unicode = |variables: &[(&str, &str)]| decided(false, variables).unicode;
        assert!(unicode(&[("LC_ALL", "C.utf8")]) && unicode(&[("LC_CTYPE", "de_DE.UTF-8"), ("LANG", "C")]));
        assert!(!unicode(&[]) && !unicode(&[("LC_ALL", "C"), UTF_8]) && !unicode(&[("LANG", "de_DE.ISO-8859-1")]));
    }
}
