//! The memory layout of an image of the state.

use super::records::{CallFault, ContextRecord, EventRecord, GpuRecord, Header, INSTANCES, LimitRecord, NONE};
use super::{CONTEXTS, EVENTS, FAULTS, LIMITS, State};

/// The size that an image always uses: the contexts follow, of which only the first are used.
const fn fixed(gpus: usize) -> usize {
    size_of::<Header>()
        + gpus * size_of::<GpuRecord>()
        + EVENTS * size_of::<EventRecord>()
        + FAULTS * size_of::<CallFault>()
        + LIMITS * size_of::<LimitRecord>()
}

/// Bytes of an image.
pub(super) const fn size(gpus: usize) -> usize {
    fixed(gpus) + CONTEXTS * size_of::<ContextRecord>()
}

/// The state in an image.
pub(super) fn view(image: &mut [u8], gpus: usize) -> State<'_> {
    let (header, rest) = image.split_at_mut(size_of::<Header>());
    let (gpus, rest) = rest.split_at_mut(gpus * size_of::<GpuRecord>());
    let (events, rest) = rest.split_at_mut(EVENTS * size_of::<EventRecord>());
    let (faults, rest) = rest.split_at_mut(FAULTS * size_of::<CallFault>());
    let (limits, contexts) = rest.split_at_mut(LIMITS * size_of::<LimitRecord>());
    State {
        header: bytemuck::from_bytes_mut(header),
        gpus: bytemuck::cast_slice_mut(gpus),
        table: bytemuck::cast_slice_mut(contexts),
        ring: bytemuck::cast_slice_mut(events),
        faults: bytemuck::cast_slice_mut(faults),
        limits: bytemuck::cast_slice_mut(limits),
    }
}

/// The inactive one of two images, as a copy of the active one. Any process may have written anything into it: entries that would
/// lead out of the tables are dropped.
pub(super) fn next(images: &mut [u8], current: u64, gpus: usize) -> State<'_> {
    let (first, second) = images.split_at_mut(images.len() / 2);
    let (from, to) = if current & 1 == 0 { (first, second) } else { (second, first) };
    let contexts = view(from, gpus).header.contexts.min(CONTEXTS as u32);
    let used = fixed(gpus) + contexts as usize * size_of::<ContextRecord>();
    to[..used].copy_from_slice(&from[..used]);
    let mut state = view(to, gpus);
    state.header.contexts = contexts;
    state.detach(|context| context.gpu as usize >= gpus || (context.instance != NONE && context.instance as usize >= INSTANCES));
    state
}
