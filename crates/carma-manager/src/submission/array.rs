//! The indices of an array: `1-10%3`, `0-15:4`, `1,3,7`.

use std::collections::BTreeSet;

use super::error::Problem;
use super::values::{at_least, digits};

/// The most jobs of one submission.
pub const MAX_MEMBERS: usize = 100_000;

const EXPECTED: &str = "a list of indices such as 1-10, 0-15:4 or 1,3,7; %3 after it runs at most 3 at once";

/// A parsed array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Array {
    /// In the order given, each once.
    pub(super) indices: Vec<u32>,
    /// How many may run at once.
    pub(super) at_most: Option<u32>,
}

impl Array {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let invalid = || Problem::invalid(text, EXPECTED);
        let (ranges, at_most) = match text.split_once('%') {
            Some((ranges, limit)) => (ranges, Some(at_least(1, limit, "a limit of 1 or more, as in 1-10%3")?)),
            None => (text, None),
        };
        let mut seen = BTreeSet::new();
        let mut indices = Vec::new();
        for range in ranges.split(',') {
            let (ends, step) = range.split_once(':').map_or((range, Some(1)), |(ends, step)| (ends, index(step)));
            let (first, last) = ends.split_once('-').unwrap_or((ends, ends));
            let (Some(first), Some(last), Some(step @ 1..)) = (index(first), index(last), step) else { return Err(invalid()) };
            if last < first || (range.contains(':') && !ends.contains('-')) {
                return Err(invalid());
            }
            for index in (first..=last).step_by(step as usize) {
                if !seen.insert(index) {
                    return Err(Problem::Refused(format!("{text:?} lists index {index} twice")));
                }
                indices.push(index);
                too_many(indices.len())?;
            }
        }
        Ok(Self { indices, at_most })
    }
}

/// Checks an array's indices: at least one, each once, not too many.
pub(super) fn check_indices(indices: &[u32]) -> Result<(), Problem> {
    too_many(indices.len())?;
    let mut seen = BTreeSet::new();
    match indices.iter().find(|index| !seen.insert(**index)) {
        _ if indices.is_empty() => Err(Problem::Refused("an array needs at least one index".to_owned())),
        Some(index) => Err(Problem::Refused(format!("index {index} is listed twice"))),
        None => Ok(()),
    }
}

fn index(text: &str) -> Option<u32> {
    digits(text)?.try_into().ok()
}

/// Refuses a submission of too many jobs.
pub(super) fn too_many(jobs: usize) -> Result<(), Problem> {
    if jobs <= MAX_MEMBERS {
        Ok(())
    } else {
        Err(Problem::Refused(format!("more than {MAX_MEMBERS} jobs, which is the limit of one submission")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Array;

    #[test]
    fn indices_have_the_forms_of_slurm() {
        let read = |text: &str| Array::parse(text).map(|array| (array.indices, array.at_most)).unwrap();
        assert_eq!(read("1-4%3"), (vec![1, 2, 3, 4], Some(3)));
        assert_eq!(read("0-15:4"), (vec![0, 4, 8, 12], None));
        assert_eq!(read("7,1,3-4"), (vec![7, 1, 3, 4], None));
        for wrong in ["", "1-", "-1", "5-1", "1,1", "1-3,2", "1-10:0", "3:2", "1-10%0", "1-10%", "a", "0-100000", "1-4294967296", "1;2"] {
            assert!(Array::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Array::parse("0-99999").unwrap().indices.len(), 100_000);
        assert_eq!(Array::parse("0-4294967295").unwrap_err().to_string(), "more than 100000 jobs, which is the limit of one submission");
    }

    proptest! {
        #[test]
        fn ranges_have_as_many_indices_as_steps(first in 0_u32..1000, more in 0_u32..1000, step in 1_u32..20) {
            let array = Array::parse(&format!("{first}-{}:{step}", first + more)).unwrap();
            prop_assert_eq!(array.indices.len() as u32, more / step + 1);
            prop_assert!(array.indices.is_sorted_by(|a, b| b - a == step));
        }
    }
}
