//! Features as small integers: each column is cut at quantiles, so that a split has few candidates.

use crate::short::short;

/// Maximum number of cuts of a column.
const CUTS: usize = 63;

/// Rows as bins.
#[derive(Debug)]
pub(super) struct Bins {
    /// Cuts of each feature, ascending.
    pub(super) cuts: Vec<Vec<f32>>,
    /// For each feature, the bin of each row: the number of cuts below its value.
    pub(super) places: Vec<Vec<u8>>,
    pub(super) rows: usize,
}

impl Bins {
    pub(super) fn of(rows: &[Vec<f32>]) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let mut bins = Self { cuts: Vec::new(), places: Vec::new(), rows: rows.len() };
        for feature in 0..width {
            let value = |row: &Vec<f32>| row.get(feature).copied().unwrap_or(0.0);
            let mut sorted: Vec<f32> = rows.iter().map(value).collect();
            sorted.sort_unstable_by(f32::total_cmp);
            sorted.dedup();
            // Midway between neighbours: new values go to the nearer side.
            let between = |place: usize| short(f32::midpoint(sorted[place], sorted[place + 1]));
            let gaps = sorted.len().saturating_sub(1);
            let mut cuts: Vec<f32> = if gaps <= CUTS {
                (0..gaps).map(between).collect()
            } else {
                (1..=CUTS).map(|cut| between(cut * gaps / (CUTS + 1))).collect()
            };
            cuts.dedup();
            bins.places.push(rows.iter().map(|row| cuts.partition_point(|cut| value(row) > *cut) as u8).collect());
            bins.cuts.push(cuts);
        }
        bins
    }
}
