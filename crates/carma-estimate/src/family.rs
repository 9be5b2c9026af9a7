//! Families of networks with similar behaviour.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{LayerKind, Model};
use crate::trace::{Event, Recording};

/// A family of networks with similar behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Fully connected layers.
    Mlp,
    /// Convolutions.
    Cnn,
    /// Attention over sequences.
    Transformer,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Mlp, Self::Cnn, Self::Transformer];

    /// The family of a model, by its layers.
    pub fn of(model: &Model) -> Self {
        let has = |wanted: fn(&LayerKind) -> bool| model.layers.iter().any(|layer| wanted(&layer.kind));
        if has(|kind| matches!(kind, LayerKind::Attention { .. } | LayerKind::Embedding)) {
            Self::Transformer
        } else if has(|kind| matches!(kind, LayerKind::Convolution { .. })) {
            Self::Cnn
        } else {
            Self::Mlp
        }
    }

    /// The family of a recorded dry run. Events show only convolutions.
    pub fn of_events(recording: &Recording) -> Self {
        let convolutions = recording.devices.iter().flatten().filter(|event| matches!(event, Event::Convolution(_))).count();
        // A patch embedding is a convolution too; in three iterations it occurs at most nine times.
        if convolutions > 9 { Self::Cnn } else { Self::Transformer }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
            Self::Transformer => "transformer",
        })
    }
}
