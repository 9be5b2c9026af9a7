//! Event logs of the core, and events as the store keeps them. Whatever a log says, the scheduler refuses it or keeps its invariants.

#![no_main]

use carma_core::{Record, Scheduler, Settings, replay};
use carma_manager::event::JobEvent;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = replay(text.as_bytes());
    // A replay ends at the first decision that differs; this goes on.
    let mut scheduler = Scheduler::new(Settings::default().check().expect("the defaults are valid"));
    for line in text.lines() {
        if let Ok(Record { at, event, .. }) = serde_json::from_str(line) {
            let _ = scheduler.handle(event, at);
        }
        if let Ok(event) = serde_json::from_str::<JobEvent>(line) {
            let _ = (event.kind(), event.text());
            let written = serde_json::to_string(&event).expect("an event can be stored");
            let read: JobEvent = serde_json::from_str(&written).expect("what is stored can be read");
            // An event with a field twice is of an unknown kind at first; what is stored has it once.
            let again: JobEvent = serde_json::from_str(&serde_json::to_string(&read).expect("it can be stored again")).expect("and read");
            assert_eq!(again, read);
        }
    }
    let broken = scheduler.audit();
    assert!(broken.is_empty(), "{broken:#?}");
});
