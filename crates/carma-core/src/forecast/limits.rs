//! `[forecast]`: limits on predicted slowdown and load of shared GPUs.

use crate::section;

section! {
    /// Predictions for jobs that share a GPU, and their limits. Only policies that predict use them.
    ForecastSettings => #[derive(Copy)] ForecastConfig {
        // The values of carma were chosen together on the 13 traces of docs/mapper.md: tighter limits refuse sharing that pays.
        /// Maximum predicted slowdown of any job by sharing: runtime divided by runtime alone. Policy `carma` and the choice of sharing modes use it.
        slowdown: f64 [1.0..=100.0] = 2.2, Carma: 2.4, Throughput: 3.0, Response: 2.2;
        /// Minimum total progress that one more job must add to a GPU, in jobs at full speed. A negative value allows a loss.
        gain: f64 [-1.0..=1.0] = 0.25, Carma: -0.1, Throughput: -0.2, Response: 0.25;
        /// Maximum predicted delay of all jobs on a GPU, by one more job, in lengths of this job. Each waiting job per GPU adds 0.5.
        delay: f64 [0.0..=1000.0] = 1000.0, Carma: 1.3, Throughput: 1000.0, Response: 1000.0;
        /// Maximum SM activity predicted for a GPU: the sum of its jobs' activities alone.
        smact: f64 [0.0..=10.0] = 3.0;
        /// Maximum DRAM activity predicted for a GPU: the sum of its jobs' activities alone.
        drama: f64 [0.0..=10.0] = 1.0, Carma: 2.0, Response: 1.0;
        /// Predictions learn from the progress that jobs report, alone and on shared GPUs.
        learn: bool = true;
    }
}
