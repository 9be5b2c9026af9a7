//! The source of a device's counters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// Source of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// NVML itself.
    Gpm,
    /// A DCGM host engine, through `dcgmi`.
    Dcgmi,
    /// dcgm-exporter's page.
    Exporter,
    /// No source: there is only NVML's utilisation.
    UtilisationOnly,
}

impl Source {
    /// All, the best first.
    pub const ALL: [Self; 4] = [Self::Gpm, Self::Dcgmi, Self::Exporter, Self::UtilisationOnly];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpm => "gpm",
            Self::Dcgmi => "dcgmi",
            Self::Exporter => "exporter",
            Self::UtilisationOnly => "utilisation-only",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a source of counters: give one of gpm, dcgmi, exporter, utilisation-only")]
pub struct UnknownSource(String);

impl FromStr for Source {
    type Err = UnknownSource;
    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        Self::ALL.into_iter().find(|source| source.name() == text).ok_or_else(|| UnknownSource(text.to_owned()))
    }
}

/// The best source that offers a device's counters; if one is forced, that one or none.
///
/// ```
/// use carma_gpu::profiling::{Source, choose};
/// assert_eq!(choose(None, |source| source != Source::Gpm), Source::Dcgmi);
/// assert_eq!(choose(Some(Source::Exporter), |source| source == Source::Gpm), Source::UtilisationOnly);
/// ```
pub fn choose(forced: Option<Source>, offers: impl Fn(Source) -> bool) -> Source {
    let allowed = |source: &Source| forced.is_none_or(|forced| forced == *source);
    Source::ALL.into_iter().filter(allowed).find(|source| offers(*source)).unwrap_or(Source::UtilisationOnly)
}

/// The state of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The counters of this many devices come from it.
    Used(usize),
    /// It has not answered yet.
    Starting,
    /// It works, but a better one is used.
    Spare,
    /// It gives none.
    Absent(Problem),
}

/// A source with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// The source.
    pub source: Source,
    /// Its state.
    pub state: SourceState,
}

impl SourceReport {
    /// The command that would enable its counters, if any.
    pub const fn remedy(&self) -> Option<&'static str> {
        match &self.state {
            SourceState::Absent(problem) => problem.remedy(),
            _ => None,
        }
    }
}

impl fmt::Display for SourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        match &self.state {
            SourceState::Used(1) => f.write_str("used for 1 device"),
            SourceState::Used(devices) => write!(f, "used for {devices} devices"),
            SourceState::Starting => f.write_str("starting"),
            SourceState::Spare => f.write_str("there, not needed"),
            SourceState::Absent(problem) => problem.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_available_source_is_chosen() {
        assert_eq!(choose(None, |_| true), Source::Gpm);
        assert_eq!(choose(None, |source| source >= Source::Exporter), Source::Exporter);
        assert_eq!(choose(None, |_| false), Source::UtilisationOnly);
        assert_eq!(choose(Some(Source::Dcgmi), |_| true), Source::Dcgmi);
        assert_eq!(choose(Some(Source::UtilisationOnly), |_| true), Source::UtilisationOnly);
    }

    #[test]
    fn sources_are_named_as_they_are_shown() {
        for source in Source::ALL {
            assert_eq!(source.to_string().parse(), Ok(source));
        }
        assert!("nsight".parse::<Source>().unwrap_err().to_string().contains("give one of gpm, dcgmi"));
    }
}
