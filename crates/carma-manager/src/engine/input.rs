//! All that reaches the engine.

use super::handle::Question;

/// Something that reached the engine.
#[derive(Debug)]
pub(super) enum Input {
    /// Somebody asks.
    Asked(Question),
}
