//! Servers that end at a known time: a job that cannot checkpoint starts only where it can also end.
//!
//! Time closes such servers without an event, so nothing of this is cached. Of many servers, only the end of the last one is stored.

use super::Demand;
use crate::fleet::{Server, Summary};
use crate::obstacle::Obstacle;
use crate::units::Time;

/// Why the server does not last long enough for the job, if so.
pub(crate) fn time_objection(demand: &Demand<'_>, server: &Server) -> Option<Obstacle> {
    let (needed, left) = (demand.lasts?, server.spec.ends? - demand.now);
    (left < needed).then_some(Obstacle::EndsTooSoon { needed, left })
}

/// Whether the job may start on the server now or later, as far as its end is concerned.
pub(crate) fn lasts(demand: &Demand<'_>, server: &Server) -> bool {
    demand.whenever || !server.ending && time_objection(demand, server).is_none()
}

/// Whether any server below the summary may last long enough. "No" is certain.
pub(crate) fn may_last(demand: &Demand<'_>, summary: &Summary) -> bool {
    demand.whenever || demand.lasts.is_none_or(|needed| demand.now + needed <= summary.last_end())
}

/// The last moment at which the job may start on the server.
pub(crate) fn closes_at(demand: &Demand<'_>, server: &Server) -> Time {
    let ends = server.spec.ends.filter(|_| !demand.whenever);
    demand.lasts.zip(ends).map_or(Time::MAX, |(needed, ends)| demand.now + (ends - demand.now - needed))
}
