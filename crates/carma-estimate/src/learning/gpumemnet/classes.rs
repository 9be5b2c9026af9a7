//! Classes of memory, and how likely each is.

/// Classes of equal size, from zero; the last one that crashed runs fall in begins at 40 GB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classes {
    /// Width in MiB.
    pub size: f64,
    /// How many.
    pub count: usize,
}

impl Classes {
    /// So many classes of `size` MiB.
    pub fn of(size: f64, count: usize) -> Self {
        Self { size, count }
    }

    /// Enough classes of `size` MiB for all of these.
    pub fn for_all(size: f64, classes: impl Iterator<Item = usize>) -> Self {
        Self { size, count: classes.max().map_or(1, |most| most + 1) }
    }

    /// The class of all above 40 GB: of 40 times 1000 or 1024 MiB, as the size counts.
    fn beyond(self) -> usize {
        let thousand = if self.size % 1024.0 == 0.0 { 1024.0 } else { 1000.0 };
        (40.0 * thousand / self.size).ceil() as usize
    }

    /// The class of a run, where it has one.
    pub fn class(self, measured: Option<f64>, crashed: bool) -> Option<usize> {
        if crashed {
            return Some(self.beyond());
        }
        measured.map(|measured| ((measured / self.size).ceil() as usize).saturating_sub(1))
    }

    /// How much a row of each class counts: rare classes more, though less than their rarity, lest common ones be forgotten.
    pub(super) fn weights(self, rows: impl Iterator<Item = usize>) -> Vec<f32> {
        let mut counts = vec![0.0_f32; self.count];
        rows.for_each(|class| counts[class.min(self.count - 1)] += 1.0);
        let all: f32 = counts.iter().sum();
        let mut weights: Vec<f32> = counts.iter().map(|count| (all / count.max(1.0)).powf(1.0 / 3.0)).collect();
        let mean: f32 = weights.iter().zip(&counts).map(|(weight, count)| weight * count).sum::<f32>() / all;
        for weight in &mut weights {
            *weight /= mean;
        }
        weights
    }

    /// The most that a run of this class needs, in MiB.
    pub fn top(self, class: usize) -> f64 {
        (class + 1) as f64 * self.size
    }
}

/// How likely each class is.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    classes: Classes,
    /// A share for each class; they add up to one.
    pub probabilities: Vec<f32>,
}

impl Prediction {
    pub(super) fn of_logits(classes: Classes, mut values: Vec<f32>) -> Self {
        let most = values.iter().copied().fold(f32::MIN, f32::max);
        for value in &mut values {
            *value = (*value - most).exp();
        }
        let total: f32 = values.iter().sum();
        for value in &mut values {
            *value /= total;
        }
        Self { classes, probabilities: values }
    }

    /// The likeliest class.
    pub fn class(&self) -> usize {
        self.probabilities.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).map_or(0, |(class, _)| class)
    }

    /// The top of the likeliest class, in MiB.
    pub fn point(&self) -> f64 {
        self.classes.top(self.class())
    }

    /// The top of the lowest class such that it or a lower one is right with at least this likelihood, in MiB.
    pub fn bound(&self, confidence: f64) -> f64 {
        let mut below = 0.0;
        let enough = |share: &f32| {
            below += f64::from(*share);
            below >= confidence
        };
        self.classes.top(self.probabilities.iter().position(enough).unwrap_or(self.probabilities.len().saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_their_top() {
        let classes = Classes::of(1024.0, 8);
        assert_eq!([1.0, 1024.0, 1025.0].map(|measured| classes.class(Some(measured), false)), [Some(0), Some(0), Some(1)]);
        assert_eq!((classes.class(Some(3.0), true), Classes::of(8192.0, 6).class(None, true)), (Some(40), Some(5)));
        assert_eq!((classes.class(None, false), classes.top(1)), (None, 2048.0));
    }

    #[test]
    fn a_bound_is_higher_the_surer_it_shall_be() {
        let prediction = Prediction { classes: Classes::of(1024.0, 3), probabilities: vec![0.2, 0.7, 0.1] };
        let bounds = [0.1, 0.5, 0.89, 0.95, 2.0].map(|confidence| prediction.bound(confidence) as u64);
        assert_eq!(bounds, [1024, 2048, 2048, 3072, 3072]);
        assert_eq!(prediction.point() as u64, 2048);
    }
}
