//! Adam, with the usual constants.

/// Moments of the gradients.
#[derive(Debug, Clone)]
pub(super) struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
}

impl Adam {
    pub(super) fn new(parameters: usize) -> Self {
        Self { first: vec![0.0; parameters], second: vec![0.0; parameters], steps: 0 }
    }

    /// One gradient step.
    pub(super) fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        const DECAY: (f32, f32) = (0.9, 0.999);
        self.steps += 1;
        let (first, second) = (1.0 - DECAY.0.powi(self.steps), 1.0 - DECAY.1.powi(self.steps));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, grad), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *mean += (1.0 - DECAY.0) * (grad - *mean);
            *square += (1.0 - DECAY.1) * (grad * grad - *square);
            *parameter -= rate * (*mean / first) / ((*square / second).sqrt() + 1e-8);
        }
    }
}
