//! Sums of energy.

use carma_core::{JobId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::request::ArrayPlace;
use crate::units::{Joules, UnixMillis};

/// Which energy is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EnergyQuery {
    /// A sum for each of these.
    pub by: EnergyKind,
    /// Offset of the time zone that days are counted in, in minutes ahead of UTC.
    #[serde(default)]
    pub ahead: i32,
    /// Of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Of attempts that ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Of attempts that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// Sums of energy, with what is needed to say what they cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyReport {
    /// The sums.
    pub sums: Vec<EnergySum>,
    /// What a kilowatt-hour costs, where that is configured.
    pub price: Option<f64>,
    /// In this currency.
    pub currency: String,
    /// Grams of CO2 a kilowatt-hour, where that is configured.
    pub carbon: Option<f64>,
}

/// By what energy is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnergyKind {
    /// A sum for each job.
    Job,
    /// For each user.
    User,
    /// For each day, on which attempts ended.
    Day,
}

/// What a sum of energy is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergyOf {
    /// A job.
    Job(JobId),
    /// All jobs of a user.
    User {
        /// The user's number.
        uid: UserId,
        /// The user's name.
        name: String,
    },
    /// A day, counted from 1970-01-01.
    Day(u32),
}

/// A sum of energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergySum {
    /// Of what.
    pub of: EnergyOf,
    /// The job's name, where it is of one.
    pub name: Option<String>,
    /// The job's place in an array.
    pub array: Option<ArrayPlace>,
    /// How much.
    pub energy: Joules,
    /// Attempts it was measured of.
    pub attempts: u64,
}
