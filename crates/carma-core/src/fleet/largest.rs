//! The largest of some values, without an allocation: summaries are made for nearly every event.

/// Values that are kept.
const MOST: usize = 32;

/// The largest [`MOST`] values, in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Largest<T> {
    values: [T; MOST],
    count: usize,
}

impl<T: Ord + Copy> Largest<T> {
    /// No values yet; `least` stands for those that there are not.
    pub(super) const fn none(least: T) -> Self {
        Self { values: [least; MOST], count: 0 }
    }

    pub(super) fn insert(&mut self, value: T) {
        let mut place = self.count;
        if place < MOST {
            self.count += 1;
        } else if value > self.values[MOST - 1] {
            place -= 1;
        } else {
            return;
        }
        while place > 0 && self.values[place - 1] < value {
            self.values[place] = self.values[place - 1];
            place -= 1;
        }
        self.values[place] = value;
    }

    /// The last of the largest `count` values, for each of these counts.
    pub(super) fn at<const N: usize>(&self, counts: [usize; N]) -> [T; N] {
        std::array::from_fn(|nth| self.values[counts[nth] - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_largest_in_order() {
        let mut largest = Largest::none(0);
        (0..100).map(|nth| nth * 37 % 100).for_each(|value| largest.insert(value));
        assert_eq!(largest.at([1, 2, 16, 32]), [99, 98, 84, 68]);
        let mut few = Largest::none(0);
        for value in [5, 7, 7] {
            few.insert(value);
        }
        assert_eq!(few.at([1, 2, 3, 4, 32]), [7, 7, 5, 0, 0]);
    }
}
