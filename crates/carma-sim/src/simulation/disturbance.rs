//! Events outside the trace: foreign processes and lost GPUs.

use carma_core::{Fraction, MiB, Time};
use thiserror::Error;

/// A disturbance of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Disturbance {
    /// A foreign process runs on it.
    Foreign {
        /// Index of the GPU over all servers.
        gpu: usize,
        /// Start.
        from: Time,
        /// End; unset: end of the run.
        until: Option<Time>,
        /// Its memory.
        memory: MiB,
        /// Its SM activity and utilisation.
        smact: Fraction,
    },
    /// The GPU does not answer.
    Loss {
        /// Index of the GPU over all servers.
        gpu: usize,
        /// Start.
        from: Time,
        /// End; unset: end of the run.
        until: Option<Time>,
    },
}

/// Error in the description of a disturbance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DisturbanceError {
    /// A part that is not `key=value`.
    #[error("{0:?} is not of the form key=value; the keys are {1}")]
    Key(String, &'static str),
    /// An invalid value.
    #[error("{key}={value}: {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// Description of the error.
        problem: String,
    },
    /// A duplicate key.
    #[error("{0} is given twice")]
    Twice(String),
    /// It ends before it begins.
    #[error("until must be later than from")]
    EndsFirst,
}

/// The values of text like `gpu=0,from=100,until=2000`.
struct Values<'a> {
    parts: Vec<(&'a str, &'a str)>,
}

impl<'a> Values<'a> {
    fn parse(text: &'a str, keys: &[&str], listed: &'static str) -> Result<Self, DisturbanceError> {
        let part = |part: &'a str| {
            let split = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            split.filter(|(key, _)| keys.contains(key)).ok_or_else(|| DisturbanceError::Key(part.to_owned(), listed))
        };
        let parts: Vec<_> = text.split(',').map(part).collect::<Result<_, _>>()?;
        let again = parts.iter().enumerate().find(|(place, (key, _))| parts[..*place].iter().any(|(before, _)| before == key));
        match again {
            Some((_, (key, _))) => Err(DisturbanceError::Twice((*key).to_owned())),
            None => Ok(Self { parts }),
        }
    }

    fn get<T>(&self, key: &'static str, read: impl Fn(f64) -> Result<T, String>) -> Result<Option<T>, DisturbanceError> {
        let Some((_, value)) = self.parts.iter().find(|(name, _)| *name == key) else { return Ok(None) };
        let wrong = |problem| DisturbanceError::Value { key, value: (*value).to_owned(), problem };
        let number: f64 = value.parse().map_err(|_| wrong("not a number".to_owned()))?;
        read(number).map(Some).map_err(wrong)
    }

    fn gpu(&self) -> Result<usize, DisturbanceError> {
        let whole = |value: f64| {
            if (0.0..1e9).contains(&value) && value.fract() == 0.0 { Ok(value as usize) } else { Err("not a GPU's number".to_owned()) }
        };
        Ok(self.get("gpu", whole)?.unwrap_or(0))
    }

    fn span(&self) -> Result<(Time, Option<Time>), DisturbanceError> {
        let time = |value: f64| Time::new(value).map_err(|error| error.to_string());
        let (from, until) = (self.get("from", time)?.unwrap_or(Time::ZERO), self.get("until", time)?);
        if until.is_some_and(|until| until <= from) { Err(DisturbanceError::EndsFirst) } else { Ok((from, until)) }
    }
}

impl Disturbance {
    /// Parses `gpu=0,from=100,until=2000,memory=8000,smact=0.5`.
    pub fn foreign(text: &str) -> Result<Self, DisturbanceError> {
        let values =
            Values::parse(text, &["gpu", "from", "until", "memory", "smact"], "gpu, from, until, memory (MiB) and smact (0 to 1)")?;
        let (from, until) = values.span()?;
        let memory = values
            .get("memory", |value| if (0.0..1e9).contains(&value) { Ok(MiB(value as u64)) } else { Err("not a memory".to_owned()) })?;
        let smact = values.get("smact", |value| Fraction::new(value).map_err(|error| error.to_string()))?;
        Ok(Self::Foreign { gpu: values.gpu()?, from, until, memory: memory.unwrap_or_default(), smact: smact.unwrap_or_default() })
    }

    /// Parses `gpu=2,from=500,until=900`.
    pub fn loss(text: &str) -> Result<Self, DisturbanceError> {
        let values = Values::parse(text, &["gpu", "from", "until"], "gpu, from and until")?;
        let (from, until) = values.span()?;
        Ok(Self::Loss { gpu: values.gpu()?, from, until })
    }

    pub(super) const fn gpu(&self) -> usize {
        match self {
            Self::Foreign { gpu, .. } | Self::Loss { gpu, .. } => *gpu,
        }
    }

    pub(super) const fn span(&self) -> (Time, Option<Time>) {
        match self {
            Self::Foreign { from, until, .. } | Self::Loss { from, until, .. } => (*from, *until),
        }
    }
}
