//! Colours and glyphs, chosen by the terminal's abilities.

use carma_format::Glyphs as Shared;
use ratatui::style::{Color, Modifier, Style};

use super::super::model::{Mark, Severity};

/// Colours of jobs: those that every terminal has, except red, which means a problem.
const JOBS: [Color; 9] = [
    Color::Cyan,
    Color::Yellow,
    Color::Magenta,
    Color::Green,
    Color::Blue,
    Color::LightCyan,
    Color::LightMagenta,
    Color::LightGreen,
    Color::LightBlue,
];

/// Colours and glyphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appearance {
    pub(crate) colour: bool,
    /// Whether the terminal shows more than ASCII.
    pub(crate) unicode: bool,
}

/// Characters to draw with.
pub(super) struct Glyphs {
    /// From empty to full.
    pub(super) levels: [char; 8],
    pub(super) reserved: char,
    pub(super) others: char,
    pub(super) free: char,
    pub(super) rule: &'static str,
    pub(super) side: char,
    /// Of a frame: left and right above, left and right below.
    pub(super) corners: [char; 4],
    pub(super) cut: char,
    pub(super) up_down: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    levels: Shared::UNICODE.levels,
    reserved: '▒',
    others: '▓',
    free: '·',
    rule: "─",
    side: '│',
    corners: ['┌', '┐', '└', '┘'],
    cut: Shared::UNICODE.cut,
    up_down: "↑↓",
};
const ASCII: Glyphs = Glyphs {
    levels: Shared::ASCII.levels,
    reserved: ':',
    others: '%',
    free: '.',
    rule: "-",
    side: '|',
    corners: ['+'; 4],
    cut: Shared::ASCII.cut,
    up_down: "jk",
};

impl Appearance {
    pub(super) const fn glyphs(self) -> &'static Glyphs {
        if self.unicode { &UNICODE } else { &ASCII }
    }

    /// Colours if enabled, otherwise a modifier.
    const fn style(self, colour: Color, otherwise: Modifier) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(otherwise) }
    }

    /// A job's letter.
    pub(super) const fn mark(self, mark: Mark) -> Style {
        self.style(JOBS[mark.among(JOBS.len())], Modifier::BOLD)
    }

    /// A job's part of a bar.
    pub(super) const fn bar(self, mark: Mark) -> Style {
        if self.colour { Style::new().fg(Color::Black).bg(JOBS[mark.among(JOBS.len())]) } else { Style::new() }
    }

    /// Reserved and unused memory of a job.
    pub(super) const fn reserved(self, mark: Mark) -> Style {
        self.style(JOBS[mark.among(JOBS.len())], Modifier::empty())
    }

    /// Something is wrong.
    pub(super) const fn alarm(self) -> Style {
        self.style(Color::Red, Modifier::BOLD).add_modifier(Modifier::BOLD)
    }

    /// A warning.
    pub(super) const fn notable(self) -> Style {
        self.style(Color::Yellow, Modifier::BOLD)
    }

    /// A good state.
    pub(super) const fn good(self) -> Style {
        self.style(Color::Green, Modifier::empty())
    }

    /// A chart over time.
    pub(super) const fn trace(self) -> Style {
        self.style(Color::Cyan, Modifier::empty())
    }

    pub(super) const fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Routine => Style::new(),
            Severity::Recovery => self.notable(),
            Severity::Failure => self.alarm(),
        }
    }
}

/// Emphasised text.
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
/// Less important text. Not by a colour: the grey of some terminals is that of their background.
pub(super) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
/// The selection in the focused list.
pub(super) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
