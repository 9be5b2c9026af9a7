//! Profiling counters: SMACT, SMOCC, DRAMA and their like, from whoever offers them.

use carma_core::Fraction;

/// Placeholder until merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// x
    pub smact: Option<Fraction>,
    /// x
    pub smocc: Option<Fraction>,
    /// x
    pub drama: Option<Fraction>,
    /// x
    pub gract: Option<Fraction>,
}
