//! Classes of memory, and their probabilities.

/// Classes of equal size, from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classes {
    /// Width in MiB.
    pub size: f64,
    /// Number of classes.
    pub count: usize,
}

impl Classes {
    /// `count` classes of `size` MiB.
    pub fn of(size: f64, count: usize) -> Self {
        Self { size, count }
    }

    /// Upper end of a class, in MiB.
    pub fn top(self, class: usize) -> f64 {
        (class + 1) as f64 * self.size
    }
}

/// Probability of each class.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    classes: Classes,
    /// One per class; the sum is one.
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

    /// The most probable class.
    pub fn class(&self) -> usize {
        self.probabilities.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).map_or(0, |(class, _)| class)
    }

    /// Upper end of the most probable class, in MiB.
    pub fn point(&self) -> f64 {
        self.classes.top(self.class())
    }

    /// Upper end of the lowest class such that this or a lower class is right with at least this probability, in MiB.
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
    fn a_higher_confidence_gives_a_higher_bound() {
        let prediction = Prediction { classes: Classes::of(1024.0, 3), probabilities: vec![0.2, 0.7, 0.1] };
        let bounds = [0.1, 0.5, 0.89, 0.95, 2.0].map(|confidence| prediction.bound(confidence) as u64);
        assert_eq!(bounds, [1024, 2048, 2048, 3072, 3072]);
        assert_eq!(prediction.point() as u64, 2048);
    }
}
