//! Estimates by replay: of synthesized events, of recorded events, and of the live peak only.

use crate::allocator::{AllocatorSettings, OutOfMemory};
use crate::stack::Allocation;
use crate::synthesis;
use crate::trace::{Event, Replay, Replayer, replay};

use super::{Answer, NoAnswer, Question, convolves, growth};

pub(super) fn from_graph(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let model = question.model()?;
    if question.stack.allocation == Allocation::Growth {
        return Ok(growth::estimate(model, question));
    }
    let run = |settings| {
        let mut replayer = Replayer::new(settings, question.stack);
        let mut end = Ok(());
        synthesis::each_event(model, question.training, |event| {
            if end.is_ok() {
                end = replayer.apply(event);
            }
        });
        end.map(|()| replayer.found())
    };
    Ok(replayed(run, question, question.stack.context_bytes(convolves(model))))
}

pub(super) fn from_recording(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let events = busiest(question)?;
    let convolves = events.iter().any(|event| matches!(event, Event::Convolution(_)));
    let run = |settings| replay(events.iter().copied(), settings, question.stack);
    Ok(replayed(run, question, question.stack.context_bytes(convolves)))
}

/// Peak of a fake-tensor run: without optimizer, allocator and context.
pub(super) fn live_peak(question: &Question<'_>) -> Result<Answer, NoAnswer> {
    let peak = replay(busiest(question)?.iter().copied(), AllocatorSettings::default(), question.stack);
    Ok(Answer::plain(peak.map_or(u64::MAX, |peak| peak.peak_tensors_before_optimizer)))
}

/// The device with the highest need.
fn busiest<'job>(question: &Question<'job>) -> Result<&'job [Event], NoAnswer> {
    let devices = &question.recording.ok_or(NoAnswer::NeedsRecording)?.devices;
    let peak = |events: &&Vec<Event>| {
        replay(events.iter().copied(), AllocatorSettings::default(), question.stack).map_or(0, |found| found.peak_reserved)
    };
    let busiest = if devices.len() == 1 { devices.first() } else { devices.iter().max_by_key(peak) };
    busiest.map(Vec::as_slice).ok_or(NoAnswer::NeedsRecording)
}

/// Replays within the GPU's memory. If that is not enough, replays without a limit to find the need.
fn replayed(run: impl Fn(AllocatorSettings) -> Result<Replay, OutOfMemory>, question: &Question<'_>, context: u64) -> Answer {
    let bounded = AllocatorSettings { capacity: question.gpu.map(|gpu| gpu.saturating_sub(context)), ..question.allocator };
    let unbounded = AllocatorSettings { capacity: None, ..question.allocator };
    let (found, out_of_memory) = match run(bounded) {
        Ok(found) => (Ok(found), false),
        Err(_) => (run(unbounded), true),
    };
    match found {
        Ok(found) => Answer {
            bytes: found.peak_reserved.saturating_add(context),
            breakdown: Some((found.breakdown, context)),
            out_of_memory,
            own_bound: None,
        },
        Err(_) => Answer { bytes: u64::MAX, breakdown: None, out_of_memory: true, own_bound: None },
    }
}
