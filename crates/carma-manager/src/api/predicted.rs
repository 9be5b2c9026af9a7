//! Predicted times.

use carma_core::Seconds;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When something is predicted to happen, from the time of the answer on. Nine of ten real times should be in the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PredictedTime {
    /// The beginning of the interval.
    pub earliest: Seconds,
    /// As likely to be later as to be earlier.
    pub likely: Seconds,
    /// The end of the interval.
    pub latest: Seconds,
}

/// The progress of a job, and its predicted times. Values without a basis are unset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobPrediction {
    /// Progress from 0 to 1, as the job reports or prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When a waiting job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<PredictedTime>,
    /// When the job ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<PredictedTime>,
    /// What its length is based on: `its progress and 3 earlier runs of this command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
}

impl JobPrediction {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PredictedTime {
    /// In words: `in 2 to 6 min`.
    ///
    /// ```
    /// use carma_core::Seconds;
    /// use carma_manager::api::PredictedTime;
    /// let [earliest, likely, latest] = [130, 200, 345].map(Seconds::from_secs);
    /// assert_eq!(PredictedTime { earliest, likely, latest }.text(), "in 2 to 6 min");
    /// ```
    pub fn text(&self) -> String {
        format!("in {}", carma_format::range(self.earliest.get(), self.latest.get()))
    }
}
