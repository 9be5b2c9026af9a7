//! Sums of energy.

use carma_core::UserId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::rows::{EnergyKind, EnergySum};
use crate::units::UnixMillis;

/// Which energy to sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EnergyQuery {
    /// What to sum by.
    pub by: EnergyKind,
    /// Time zone of the days, in minutes ahead of UTC.
    #[serde(default)]
    pub ahead: i32,
    /// Only of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Only of attempts that ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only of attempts that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// Sums of energy, with price and carbon intensity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyReport {
    /// The sums.
    pub sums: Vec<EnergySum>,
    /// Price of a kilowatt-hour, if configured.
    pub price: Option<f64>,
    /// Currency of the price.
    pub currency: String,
    /// Grams of CO2 per kilowatt-hour, if configured.
    pub carbon: Option<f64>,
}
