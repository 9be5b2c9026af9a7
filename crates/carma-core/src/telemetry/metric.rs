//! The metrics that are monitored, one row each.
//!
//! A new metric needs a row here, and one for its source: in `carma-gpu`'s table of DCGM fields. Samples, windows, the store, the API,
//! Prometheus, the command line and the web page go by this table.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The description of a metric. All metrics are shares from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricFacts {
    /// Its name in JSON.
    pub id: &'static str,
    /// The name of its column in the store, which is accepted in JSON, too.
    pub stored: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// The name of its gauge for Prometheus.
    pub gauge: &'static str,
    /// Whether tables and charts of a GPU show it.
    pub shown: Shown,
}

/// When tables and charts of a GPU show a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Also where it is not measured.
    Always,
    /// Where it is measured.
    WhereMeasured,
    /// Never: it has another place, or replaces others.
    Never,
}

macro_rules! metrics {
    ($($metric:ident $facts:tt)+) => {
        /// What is measured of a GPU's activity.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = concat!("See [`Metric::facts`] of `", stringify!($metric), "`.")] $metric,)+
        }

        impl Metric {
            /// All of them. The order is that of tables and charts.
            pub const ALL: [Self; [$(Self::$metric),+].len()] = [$(Self::$metric),+];

            /// Its description.
            pub const fn facts(self) -> &'static MetricFacts {
                match self {
                    $(Self::$metric => &MetricFacts $facts,)+
                }
            }
        }
    };
}

metrics! {
    Smact {
        id: "smact",
        stored: "smact",
        label: "SMACT",
        about: "Share of time in which SMs were active (SMACT).",
        gauge: "carma_gpu_sm_active_ratio",
        shown: Shown::Always,
    }
    Smocc {
        id: "smocc",
        stored: "smocc",
        label: "SMOCC",
        about: "Share of warp slots in use (SMOCC).",
        gauge: "carma_gpu_sm_occupancy_ratio",
        shown: Shown::Always,
    }
    Drama {
        id: "drama",
        stored: "drama",
        label: "DRAMA",
        about: "Share of time in which memory was read or written (DRAMA).",
        gauge: "carma_gpu_dram_active_ratio",
        shown: Shown::Always,
    }
    Tensor {
        id: "tensor",
        stored: "tensor",
        label: "TENSO",
        about: "Share of time in which tensor cores were active (TENSO).",
        gauge: "carma_gpu_tensor_active_ratio",
        shown: Shown::WhereMeasured,
    }
    Utilisation {
        id: "gpu",
        // Event logs of 0.1.0 called it so, too.
        stored: "utilisation",
        label: "GPU utilisation",
        about: "Share of time in which at least one kernel ran.",
        gauge: "carma_gpu_utilisation_ratio",
        shown: Shown::Never,
    }
}

impl Metric {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        self.facts().label
    }

    /// The metrics that tables and charts show, given which are measured.
    pub fn shown(measured: impl Fn(Self) -> bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |metric| match metric.facts().shown {
            Shown::Always => true,
            Shown::WhereMeasured => measured(*metric),
            Shown::Never => false,
        })
    }

    /// The metric with this name in JSON or in the store.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| [metric.facts().id, metric.facts().stored].contains(&id))
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.facts().id)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = String::deserialize(deserializer)?;
        Self::by_id(&id).ok_or_else(|| de::Error::custom(format!("unknown metric {id:?}")))
    }
}
