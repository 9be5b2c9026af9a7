//! Events of the driver: Xid errors, memory errors, changed partitions.

use std::ffi::{c_uint, c_ulonglong};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t};

use super::answer::{Answer, Code, finish, handle, of_gpu, of_system, put};
use super::declare::{calls, gpu_values};
use super::held::HandleTable;
use super::library::machine;
use crate::state::{EventRecord, NONE, Place, State};

/// Types that can happen here: errors of memory corrected (1) or not (2), changes of the performance state (4), Xid (8), clocks (16), partitions (256).
const WITHOUT_ECC: c_ulonglong = 4 | 8 | 16 | 256;
const ECC: c_ulonglong = 1 | 2;
const XID: c_ulonglong = 8;
/// Interval of checks for new events.
const POLL: Duration = Duration::from_millis(20);
/// Interval of checks for faults of its own call and lost GPUs.
const FULL_CHECK: Duration = Duration::from_millis(500);

/// Types of events that are awaited from a GPU, from an event on.
#[derive(Debug, Clone, Copy)]
struct Registration {
    gpu: usize,
    types: c_ulonglong,
    from: u64,
}

/// A set: the awaited events, and the number of the next event.
#[derive(Debug, Clone, Default)]
struct EventSet {
    awaited: Vec<Registration>,
    next: u64,
}

static SETS: HandleTable<EventSet> = HandleTable::new();

/// Frees all sets: their handles become invalid.
pub(super) fn forget() {
    SETS.clear();
}

impl EventSet {
    fn awaits(&self, number: u64, event: &EventRecord) -> bool {
        let is_it = |awaited: &Registration| awaited.gpu == event.gpu as usize && awaited.types & event.kind != 0 && number >= awaited.from;
        self.awaited.iter().any(is_it)
    }

    /// The next awaited event. Reported events come before the loss of a GPU.
    fn take(&mut self, state: &State<'_>) -> Answer<Option<EventRecord>> {
        while let Some((number, event)) = state.event_from(self.next) {
            self.next = number + 1;
            if self.awaits(number, &event) {
                return Ok(Some(event));
            }
        }
        let lost = self.awaited.iter().any(|awaited| state.gpus.get(awaited.gpu).is_some_and(|gpu| gpu.lost != 0));
        if lost { Err(Code::GPU_IS_LOST) } else { Ok(None) }
    }
}

fn supported(state: &State<'_>, gpu: usize) -> c_ulonglong {
    WITHOUT_ECC | if state.profile(gpu).facts.ecc { ECC } else { 0 }
}

/// Waits for an event. Each check locks the state by itself, so that other calls do not wait meanwhile.
fn wait(call: &str, set: nvmlEventSet_t, milliseconds: c_uint) -> Answer<nvmlEventData_t> {
    let until = Instant::now() + Duration::from_millis(milliseconds.into());
    loop {
        let seen = machine()?.events();
        let event = of_system(call, |state| {
            let event = SETS.with(set, |set| set.take(state))??;
            Ok(event.map(|event| data(state, &event)))
        })?;
        match event {
            Some(event) => return Ok(event),
            None if Instant::now() >= until => return Err(Code::TIMEOUT),
            None => wait_for_event(seen, until.min(Instant::now() + FULL_CHECK))?,
        }
    }
}

/// Waits until there is an event after the last seen one, or until this time.
fn wait_for_event(seen: Option<u64>, until: Instant) -> Answer<()> {
    while Instant::now() < until && machine()?.events() == seen {
        std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn data(state: &State<'_>, event: &EventRecord) -> nvmlEventData_t {
    let instance =
        state.gpus.get(event.gpu as usize).and_then(|gpu| gpu.instances.get(event.instance as usize)).filter(|_| event.kind == XID);
    nvmlEventData_t {
        device: handle(Place::gpu(event.gpu as usize)),
        eventType: event.kind,
        eventData: event.data,
        gpuInstanceId: instance.map_or(NONE, |instance| instance.id),
        computeInstanceId: instance.map_or(NONE, |_| 0),
    }
}

/// The structure of the first version of the wait.
#[repr(C)]
pub struct FirstEventData {
    device: nvmlDevice_t,
    kind: c_ulonglong,
    data: c_ulonglong,
}

gpu_values! {
    nvmlDeviceGetSupportedEventTypes(c_ulonglong) = |state, gpu| Ok(supported(state, gpu));
}

calls! {
    fn nvmlEventSetCreate(set: *mut nvmlEventSet_t) {
        if set.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(set, of_system(CALL, |_| Ok(SETS.keep(EventSet::default()))))
    }

    fn nvmlDeviceRegisterEvents(device: nvmlDevice_t, types: c_ulonglong, set: nvmlEventSet_t) {
        finish(of_gpu(CALL, device, |state, gpu| {
            if types & !supported(state, gpu) != 0 {
                return Err(Code::NOT_SUPPORTED);
            }
            let awaited = Registration { gpu, types, from: state.header.events };
            SETS.with(set, |set| {
                if set.awaited.is_empty() {
                    set.next = awaited.from;
                }
                set.awaited.push(awaited);
            })
        }))
    }

    fn nvmlEventSetWait_v2(set: nvmlEventSet_t, event: *mut nvmlEventData_t, milliseconds: c_uint) {
        if event.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(event, wait(CALL, set, milliseconds))
    }

    fn nvmlEventSetWait(set: nvmlEventSet_t, event: *mut FirstEventData, milliseconds: c_uint) {
        if event.is_null() { return Code::INVALID_ARGUMENT.0; }
        let first = |event: nvmlEventData_t| FirstEventData { device: event.device, kind: event.eventType, data: event.eventData };
        put(event, wait(CALL, set, milliseconds).map(first))
    }

    fn nvmlEventSetFree(set: nvmlEventSet_t) { finish(of_system(CALL, |_| Ok(())).and_then(|()| SETS.free(set))) }
}
