//! A value for each metric.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metric::Metric;
use crate::units::Fraction;

/// A value for each metric, in an array.
///
/// In JSON it is an object by the metrics' names. Values that equal their default are left out; unknown names are ignored.
///
/// ```
/// use carma_core::{Fraction, Metric, Utilisation};
/// let busy: Utilisation = serde_json::from_str(r#"{"smact": 0.5, "utilisation": 1.0, "of a later version": 3}"#).unwrap();
/// assert_eq!(busy[Metric::Smact], Some(Fraction::clamped(0.5)));
/// assert_eq!(serde_json::to_string(&busy).unwrap(), r#"{"smact":0.5,"gpu":1.0}"#);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PerMetric<T>([T; Metric::COUNT]);

/// How busy a GPU is, as far as known.
pub type Utilisation = PerMetric<Option<Fraction>>;

/// How busy a GPU was over time: a column for each metric.
pub type UtilisationOverTime = PerMetric<Vec<Option<f64>>>;

impl<T> PerMetric<T> {
    /// The value that a function gives for each metric.
    pub fn from_fn(mut value: impl FnMut(Metric) -> T) -> Self {
        Self(Metric::ALL.map(&mut value))
    }

    /// The same with another value for one metric.
    #[must_use]
    pub fn with(mut self, metric: Metric, value: T) -> Self {
        self[metric] = value;
        self
    }

    /// Each metric with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, &T)> {
        Metric::ALL.into_iter().zip(&self.0)
    }

    /// Each metric with its value, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Metric, &mut T)> {
        Metric::ALL.into_iter().zip(&mut self.0)
    }

    /// Another value for each of these.
    pub fn map<U>(self, value: impl FnMut(T) -> U) -> PerMetric<U> {
        PerMetric(self.0.map(value))
    }
}

impl<T: Copy> PerMetric<Option<T>> {
    /// No value for any metric.
    pub const NONE: Self = Self([None; Metric::COUNT]);
}

impl Utilisation {
    /// Known shares of some metrics, from plain numbers.
    pub fn of<const N: usize>(shares: [(Metric, f64); N]) -> Self {
        shares.into_iter().fold(Self::NONE, |all, (metric, share)| all.with(metric, Some(Fraction::clamped(share))))
    }
}

impl<T> Index<Metric> for PerMetric<T> {
    type Output = T;
    fn index(&self, metric: Metric) -> &T {
        &self.0[metric as usize]
    }
}

impl<T> IndexMut<Metric> for PerMetric<T> {
    fn index_mut(&mut self, metric: Metric) -> &mut T {
        &mut self.0[metric as usize]
    }
}

impl<T: fmt::Debug> fmt::Debug for PerMetric<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize + Default + PartialEq> Serialize for PerMetric<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let absent = T::default();
        for (metric, value) in self.iter().filter(|(_, value)| **value != absent) {
            map.serialize_entry(metric.facts().id, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for PerMetric<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByName(PhantomData))
    }
}

struct ByName<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ByName<T> {
    type Value = PerMetric<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by the names of metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerMetric<T>, A::Error> {
        let mut all = PerMetric::from_fn(|_| T::default());
        while let Some(name) = map.next_key::<String>()? {
            match Metric::by_id(&name) {
                Some(metric) => all[metric] = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(all)
    }
}
