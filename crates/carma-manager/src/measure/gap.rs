//! A time without samples, as while no manager ran: its energy is divided by who was there, and for how long.

use carma_core::{AttemptId, Seconds};

use super::usage_sample::Holder;

/// A time without samples of a GPU, up to now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gap {
    /// How long it is.
    pub span: Seconds,
    /// How long each attempt ran in it. Others have ended, and their ends were told.
    pub present: Vec<(AttemptId, Seconds)>,
}

/// A part of a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// Unset: its part counts as idle.
    pub(super) holder: Option<Holder>,
    /// How long.
    pub(super) span: Seconds,
    /// Its part of the GPU's activity.
    pub(super) weight: f64,
}

impl Gap {
    /// Who was there: the holders in the last sample before, which have these weights. Whether later attempts used the GPU is not known.
    pub(super) fn parts(&self, before: &[(Holder, f64)]) -> Vec<Part> {
        let part = |(holder, weight): &(Holder, f64)| {
            let there = match holder {
                Holder::Others => Some(self.span),
                Holder::Attempt(attempt) => self.present.iter().find(|(present, _)| present == attempt).map(|(_, span)| *span),
            };
            Part { holder: there.map(|_| *holder), span: there.unwrap_or(self.span).min(self.span), weight: *weight }
        };
        before.iter().map(part).collect()
    }
}
