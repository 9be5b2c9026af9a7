//! Sums of energy.

use carma_core::UserId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::rows::{EnergyKind, EnergySum};
use crate::units::UnixMillis;

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
