//! Serialization of trained ensembles.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::scaling::Scaling;
use super::{Architecture, Classes, ENCODERS, GpuMemNet, widths};
use crate::family::Family;
use crate::learned::neural::Member;

/// Why a text is not a valid ensemble.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// Not in this format.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// The number of parameters does not fit the network.
    #[error("member {member} has {found} numbers of {wanted}: the file is of another version; train again")]
    Size {
        /// Index of the network in the ensemble.
        member: usize,
        /// Numbers in the file.
        found: usize,
        /// Numbers expected.
        wanted: usize,
    },
    /// A value out of its range.
    #[error("{0}")]
    Value(&'static str),
}

#[derive(Serialize, Deserialize)]
struct File {
    family: Family,
    architecture: Architecture,
    class_mib: f64,
    classes: usize,
    scaling: Scaling,
    members: Vec<Written>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    /// Index of the encoder, if any.
    encoder: Option<usize>,
    depth: i32,
    parameters: Vec<f32>,
    state: Vec<f32>,
}

impl GpuMemNet {
    /// The ensemble as text.
    pub fn write(&self) -> Result<String, WeightsError> {
        let written = |member: &Member| Written {
            encoder: member.encoder_shape().and_then(|shape| ENCODERS.iter().position(|known| *known == shape)),
            depth: member.depth(),
            parameters: member.parameters.clone(),
            state: member.state.clone(),
        };
        let file = File {
            family: self.family,
            architecture: self.architecture,
            class_mib: self.classes.size,
            classes: self.classes.count,
            scaling: self.scaling.clone(),
            members: self.members.iter().map(written).collect(),
        };
        // One network per line keeps diffs readable.
        Ok(serde_json::to_string(&file)?.replace("{\"encoder\"", "\n{\"encoder\"") + "\n")
    }

    /// Parses an ensemble.
    pub fn read(text: &str) -> Result<Self, WeightsError> {
        let file: File = serde_json::from_str(text)?;
        if !(file.class_mib > 0.0 && (1..=1000).contains(&file.classes)) {
            return Err(WeightsError::Value("classes are from 1 to 1000, of a size above 0 MiB"));
        }
        if file.scaling.layers.len() != 2 || file.members.is_empty() {
            return Err(WeightsError::Value("an ensemble has members, and scales for two features of layers"));
        }
        let member = |(place, written): (usize, Written)| {
            let encoder = match written.encoder {
                None => None,
                Some(number) => Some(*ENCODERS.get(number).ok_or(WeightsError::Value("there is no such encoder"))?),
            };
            if !(1..=16).contains(&written.depth) {
                return Err(WeightsError::Value("a stack has from 1 to 16 layers"));
            }
            let mut member = Member::new(file.scaling.whole.len(), encoder, &widths(written.depth), file.classes);
            let (found, wanted) = (written.parameters.len() + written.state.len(), member.parameters.len() + member.state.len());
            if written.parameters.len() != member.parameters.len() || found != wanted {
                return Err(WeightsError::Size { member: place, found, wanted });
            }
            (member.parameters, member.state) = (written.parameters, written.state);
            member.ready();
            Ok(member)
        };
        let members = file.members.into_iter().enumerate().map(member).collect::<Result<_, _>>()?;
        let classes = Classes::of(file.class_mib, file.classes);
        Ok(Self { family: file.family, architecture: file.architecture, classes, scaling: file.scaling, members })
    }
}
