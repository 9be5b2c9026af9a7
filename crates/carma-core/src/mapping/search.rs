//! Searching the fleet for a job's devices.

use std::cell::Cell;

use super::choose::{self, Candidate, Choice, Chosen};
use crate::admission::{self, Demand, JobQuestion, RankNeed};
use crate::config::Enforcement;
use crate::device::Device;
use crate::fleet::{Fleet, OfferKind, Server, Summary};
use crate::forecast::InterferenceProfile;
use crate::job::{Granted, Placement};
use crate::modes::thread_share;
use crate::obstacle::PlacementKind;
use crate::policy::{Order, Score};
use crate::sharing::{CollocationMode, Limits, RequestedMode};
use crate::units::{MiB, Time};

/// Servers that could take a job and are checked before the best of them is taken, where progress is predicted.
const SERVERS_PREDICTED: usize = 64;

/// The devices for a job this way, or none: all of its ranks or nothing.
pub(crate) fn find(fleet: &Fleet, question: &JobQuestion<'_>, now: Time) -> Option<Placement> {
    if question.kind == PlacementKind::Share && (question.demand.needs_idle || question.suspended_by.is_some()) {
        return None;
    }
    let devices = within_one_server(fleet, question, now).or_else(|| spanning(fleet, question, now))?;
    placement(&devices, question)
}

fn within_one_server<'a>(fleet: &'a Fleet, question: &JobQuestion<'_>, now: Time) -> Option<Chosen<'a>> {
    let everywhere = 0..fleet.servers().len();
    let order = question.config.mapping.policy.order;
    // What a job does to those already there is known only for servers that were checked, so bounds skip few of them: in a large fleet the
    // best of this many is good enough.
    let tried = Cell::new(0);
    let enough = || matches!(order, Order::Predicted(_)) && tried.get() >= SERVERS_PREDICTED;
    let search = |range, after_cursor: bool| {
        fleet.best(
            range,
            |summary| if enough() { None } else { bound(summary, question) },
            |server| {
                if !admission::host_takes(question, server) {
                    return None;
                }
                let choice = if after_cursor { choose_after_cursor(server, question, now) } else { choose::choose(server, question, now) };
                choice.map(|Choice { devices, score }| {
                    tried.set(tried.get() + 1);
                    (score, devices)
                })
            },
        )
    };
    let start = match (order, question.cursor) {
        (Order::Ring, Some(cursor)) => fleet.server_place(cursor.server()),
        _ => Err(0),
    };
    let start = match start {
        Ok(start) => start,
        // The last used server was removed; the ring continues after it.
        Err(next) => return search(next..everywhere.end, false).or_else(|| search(0..next, false)),
    };
    // Once round the ring: what is left of the last server, the others, and the whole of the last again.
    search(start..start + 1, true).or_else(|| search(start + 1..everywhere.end, false)).or_else(|| search(0..start + 1, false))
}

fn choose_after_cursor<'a>(server: &'a Server, question: &JobQuestion<'_>, now: Time) -> Option<Choice<'a>> {
    let mut candidates = choose::candidates(server, question, now);
    candidates.retain(|candidate| Some(candidate.device.id()) > question.cursor);
    choose::assign(&candidates, server.spec.topology.as_ref(), question)
}

/// A score that no server below the summary can beat for this job.
fn bound(summary: &Summary, question: &JobQuestion<'_>) -> Option<Score> {
    let held = question.demand.host.fits_in(summary.host_unbooked) && admission::may_last(question.demand, summary);
    if !held || summary.is_out_of_power() {
        return None;
    }
    let ranks = &question.demand.ranks;
    let least = ranks.last().map_or(MiB::ZERO, |need| need.to_share);
    match question.kind {
        PlacementKind::Idle => summary.may_hold(OfferKind::Idle, ranks.len(), |nth| ranks[nth].alone).then_some(Score(0)),
        PlacementKind::Share => summary.may_hold(OfferKind::Room, ranks.len(), |nth| ranks[nth].to_share).then(|| summary.best(least)),
    }
}

/// Devices on several servers, as few servers as will do. Any of them may become the one the job is launched on, so the
/// hosts of all must have what it claims.
fn spanning<'a>(fleet: &'a Fleet, question: &JobQuestion<'_>, now: Time) -> Option<Chosen<'a>> {
    if !question.demand.spec.may_span_servers || fleet.open_devices(question.kind) < question.demand.width() {
        return None;
    }
    let least = question.demand.ranks.last()?;
    let mut servers: Vec<Vec<Candidate<'a>>> = Vec::new();
    let mut found = 0;
    fleet.visit(
        |summary| {
            let host = question.demand.host.fits_in(summary.host_unbooked) && !summary.is_out_of_power();
            host && admission::may_last(question.demand, summary)
                && match question.kind {
                    PlacementKind::Idle => summary.may_hold(OfferKind::Idle, 1, |_| least.alone),
                    PlacementKind::Share => summary.may_hold(OfferKind::Room, 1, |_| least.to_share),
                }
        },
        |server| {
            if !admission::host_takes(question, server) {
                return;
            }
            let candidates = choose::candidates(server, question, now);
            found += candidates.len();
            servers.push(candidates);
        },
    );
    if found < question.demand.width() {
        return None;
    }
    servers.sort_by_key(|candidates| std::cmp::Reverse(candidates.len()));
    choose::assign(&servers.concat(), None, question).map(|choice| choice.devices)
}

/// Whether the job could run if everything else ended: a job that is too large for every server, or would outlast it, is set aside
/// instead of blocking the queue.
pub(crate) fn could_ever_fit(fleet: &Fleet, demand: &Demand<'_>) -> bool {
    fits_until(fleet, demand).is_some()
}

/// Until when the job could run if everything else ended; `None`: it could not. Servers that end close to it as time passes.
pub(crate) fn fits_until(fleet: &Fleet, demand: &Demand<'_>) -> Option<Time> {
    let ranks = &demand.ranks;
    let suits = |device: &Device, need: &RankNeed| {
        let offered = || admission::mode_objection(demand.spec, device).is_none() || demand.could_have(device, need);
        device.exists() && device.spec.memory >= need.alone && offered()
    };
    // The n-th neediest rank needs n devices that suit it.
    let covers = |devices: &mut dyn Iterator<Item = &Device>| {
        let mut counts = vec![0; ranks.len()];
        for device in devices {
            ranks.iter().zip(&mut counts).for_each(|(need, count)| *count += usize::from(suits(device, need)));
        }
        counts.iter().enumerate().all(|(nth, count)| *count > nth)
    };
    let usable = |server| admission::usable_devices(server, demand);
    // Where the end does not matter, the first server will do.
    let later_is_better = |end: Time| Score(if demand.lasts.is_some() { u64::MAX - end.milliseconds() } else { 0 });
    let one = fleet.best(
        0..fleet.servers().len(),
        |summary| {
            let held = demand.host.fits_in(summary.host_total) && admission::may_last(demand, summary);
            let may = held && summary.may_hold(OfferKind::Capacity, ranks.len(), |nth| ranks[nth].alone);
            may.then(|| later_is_better(summary.last_end()))
        },
        |server| {
            let end = server.spec.ends.unwrap_or(Time::MAX);
            covers(&mut usable(server)).then(|| (later_is_better(end), admission::closes_at(demand, server)))
        },
    );
    let spanning = || {
        let servers = || fleet.servers().iter().filter(|server| admission::lasts(demand, server));
        let fits = demand.spec.may_span_servers && covers(&mut servers().flat_map(usable));
        // Any of them may be one that it cannot do without.
        fits.then(|| servers().map(|server| admission::closes_at(demand, server)).min())?
    };
    one.or_else(spanning)
}

fn placement(chosen: &Chosen<'_>, question: &JobQuestion<'_>) -> Option<Placement> {
    let granted = chosen.iter().map(|(need, device)| Granted {
        device: device.id(),
        reserved: need.reserved.on(device.spec.memory),
        limits: limits(device, need, question),
    });
    Some(Placement { server: chosen.first()?.1.id().server(), devices: granted.collect() })
}

fn limits(device: &Device, need: &RankNeed, question: &JobQuestion<'_>) -> Limits {
    match (device.spec.mode, device.id().instance) {
        (_, Some(instance)) => Limits::Mig { instance },
        (CollocationMode::Mps { .. }, _) if question.demand.spec.mode != RequestedMode::Streams => Limits::Mps {
            active_threads: question.config.mps.active_threads.or_else(|| {
                let by_need = question.config.modes.thread_shares;
                by_need.then(|| thread_share(InterferenceProfile::of(question.demand.spec))).flatten()
            }),
            // Only a known need is enforced: an estimate that errs would make the very crash it is to prevent.
            memory: need.known.filter(|_| question.config.mps.limit_memory),
        },
        _ => driver_limits(device, need, question),
    }
}

fn driver_limits(device: &Device, need: &RankNeed, question: &JobQuestion<'_>) -> Limits {
    let whole = device.spec.memory;
    match question.config.enforce.where_possible() {
        Enforcement::Soft | Enforcement::Hard if !device.spec.limits_memory => Limits::Streams,
        Enforcement::Off => Limits::Streams,
        Enforcement::Hard if !need.unknown => Limits::Driver { memory: need.reserved.on(whole) },
        Enforcement::Soft | Enforcement::Hard => Limits::Driver { memory: whole },
    }
}
