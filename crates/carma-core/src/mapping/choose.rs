//! Choosing devices within one server: the policy's order, then closeness.

use super::packing::packing_pays;
use crate::DeviceId;
use crate::admission::{self, JobQuestion, RankNeed};
use crate::device::{Device, grown_stale};
use crate::fleet::{Server, Topology};
use crate::obstacle::PlacementKind;
use crate::policy::{Order, Score};
use crate::units::Time;

/// A device that would take the least needy rank of the job.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) device: &'a Device,
    score: Score,
    /// Devices that the ring reaches only after coming round stand last.
    comes_round: bool,
}

/// One device a rank, in rank order, and the worst score among them.
pub(super) struct Choice<'a> {
    pub(super) devices: Chosen<'a>,
    pub(super) score: Score,
}

/// Each rank's need and the device that meets it.
pub(super) type Chosen<'a> = Vec<(RankNeed, &'a Device)>;

/// The devices of a server that could take a rank, best first.
pub(super) fn candidates<'a>(server: &'a Server, question: &JobQuestion<'_>, now: Time) -> Vec<Candidate<'a>> {
    let Some(least) = question.demand.ranks.last() else { return Vec::new() };
    let order = question.config.mapping.policy.order;
    let cursor = if matches!(order, Order::Ring) { question.cursor } else { None };
    let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(server.devices.len());
    for device in &server.devices {
        let score = match question.kind {
            PlacementKind::Idle => device.availability().idle.map(|_| Score(0)),
            PlacementKind::Share => device.availability().room.map(|room| room.score),
        };
        let Some(score) = score else { continue };
        let stale = grown_stale(device, question.config, now).is_some();
        let pays = || !question.packs || packing_pays(device, question.demand.profile(), question.config.forecast);
        let powered = || admission::power_objection(question, server, device).is_none();
        if !stale && admission::first_job_obstacle(question, least, device).is_none() && pays() && powered() {
            let score = question.predict(device).filter(|_| question.kind == PlacementKind::Share).and_then(Result::ok).unwrap_or(score);
            candidates.push(Candidate { device, score, comes_round: cursor.is_some_and(|cursor| device.id() <= cursor) });
        }
    }
    // Stable, and devices stand in order: equals stay as they are.
    candidates.sort_by_key(|candidate| (candidate.score, candidate.comes_round));
    candidates
}

/// Gives every rank a device of this server, or none.
pub(super) fn choose<'a>(server: &'a Server, question: &JobQuestion<'_>, now: Time) -> Option<Choice<'a>> {
    let candidates = candidates(server, question, now);
    assign(&candidates, server.spec.topology.as_ref(), question)
}

/// Gives every rank one of the candidates, or none. The policy picks the first device; the others are those closest to
/// the ones chosen, and the policy's order decides between equals. On idle devices, which are all alike, every first
/// device is tried and the closest set wins.
pub(super) fn assign<'a>(candidates: &[Candidate<'a>], topology: Option<&Topology>, question: &JobQuestion<'_>) -> Option<Choice<'a>> {
    let width = question.demand.width();
    if candidates.len() < width {
        return None;
    }
    let Some(topology) = topology.filter(|_| width > 1) else {
        return grow(candidates, None, 0, question).map(|(_, choice)| choice);
    };
    let seeds = if question.kind == PlacementKind::Idle { candidates.len() } else { 1 };
    let sets = (0..seeds).filter_map(|seed| grow(candidates, Some(topology), seed, question));
    // The first of equals, so the lowest devices where the topology does not care.
    sets.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, choice)| choice)
}

/// Ranks are served the neediest first: a device that fits a needy rank fits every other, so no choice here can leave
/// a later rank without a device that another choice would have left it.
fn grow<'a>(
    candidates: &[Candidate<'a>],
    topology: Option<&Topology>,
    seed: usize,
    question: &JobQuestion<'_>,
) -> Option<(u32, Choice<'a>)> {
    let mut chosen: Vec<(RankNeed, Candidate<'a>)> = Vec::with_capacity(question.demand.width());
    let mut total = 0;
    for (turn, need) in question.demand.ranks.iter().enumerate() {
        let closeness =
            |id: DeviceId| topology.map_or(0, |links| chosen.iter().map(|(_, other)| links.closeness(id, other.device.id())).sum());
        let start = if turn == 0 { seed } else { 0 };
        let mut pick: Option<(u32, Candidate<'a>)> = None;
        for candidate in &candidates[start..] {
            let free = chosen.iter().all(|(_, other)| other.device.id() != candidate.device.id());
            if !free || admission::first_job_obstacle(question, need, candidate.device).is_some() {
                continue;
            }
            let close = closeness(candidate.device.id());
            if pick.is_none_or(|(closest, _)| close > closest) {
                pick = Some((close, *candidate));
            }
            if topology.is_none() || turn == 0 {
                break;
            }
        }
        let (close, candidate) = pick?;
        total += close;
        chosen.push((*need, candidate));
    }
    let score = chosen.iter().map(|(_, candidate)| candidate.score).max()?;
    chosen.sort_by_key(|(need, _)| need.rank);
    Some((total, Choice { devices: chosen.into_iter().map(|(need, candidate)| (need, candidate.device)).collect(), score }))
}
