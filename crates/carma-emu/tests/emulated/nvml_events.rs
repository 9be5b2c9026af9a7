//! Events reach only their subscribers.

use std::time::Duration;

use carma_emu::state::{EventRecord, NONE};
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::error::NvmlError;

use crate::support::Emulated;

const CORRECTED: u64 = 1;
const XID: u64 = 8;

fn report(emulated: &Emulated, gpu: u32, kind: u64, data: u64) {
    emulated.with(|state| state.report(EventRecord { gpu, instance: NONE, kind, data }));
}

#[test]
fn events_come_in_order_for_what_is_registered_from_then_on() {
    let emulated = Emulated::new("2xA100-40GB,1xRTX-3090-24GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(1).unwrap();
    report(&emulated, 1, XID, 13);
    let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set().unwrap()).map_err(|_| ()).unwrap();
    assert!(matches!(set.wait(0), Err(NvmlError::Timeout)), "what was before does not count");
    report(&emulated, 0, XID, 1);
    report(&emulated, 1, CORRECTED, 2);
    report(&emulated, 1, XID, 31);
    report(&emulated, 1, XID, 43);
    for expected in ["31", "43"] {
        let event = set.wait(1000).unwrap();
        assert_eq!(event.device.index().unwrap(), 1);
        assert_eq!(event.event_type, EventTypes::CRITICAL_XID_ERROR);
        assert!(format!("{:?}", event.event_data).contains(expected), "{:?}", event.event_data);
    }
    assert!(matches!(set.wait(5), Err(NvmlError::Timeout)));
    let supported = nvml.device_by_index(2).unwrap().supported_event_types().unwrap();
    assert!(supported.contains(EventTypes::CRITICAL_XID_ERROR) && !supported.contains(EventTypes::DOUBLE_BIT_ECC_ERROR), "it has no ECC");
}

#[test]
fn a_waiting_call_returns_with_the_next_event() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(0).unwrap();
    let set = device.register_events(EventTypes::DOUBLE_BIT_ECC_ERROR, nvml.create_event_set().unwrap()).map_err(|_| ()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            report(&emulated, 0, 2, 0);
        });
        assert_eq!(set.wait(60_000).unwrap().event_type, EventTypes::DOUBLE_BIT_ECC_ERROR);
    });
}

#[test]
fn a_lost_gpu_reports_the_xid_and_then_the_loss() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(0).unwrap();
    let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, nvml.create_event_set().unwrap()).map_err(|_| ()).unwrap();
    emulated.with(|state| {
        state.gpus[0].lost = 1;
        state.report(EventRecord { gpu: 0, instance: NONE, kind: XID, data: 79 });
    });
    assert!(format!("{:?}", set.wait(1000).unwrap().event_data).contains("79"));
    assert!(matches!(set.wait(1000), Err(NvmlError::GpuLost)));
    assert!(matches!(device.power_usage(), Err(NvmlError::GpuLost)));
    assert!(matches!(nvml.device_by_index(0), Err(NvmlError::GpuLost)));
    assert_eq!(nvml.device_count().unwrap(), 1);
}
