//! The static estimator against recorded dry runs, one small network for each kind of layer (made by `recorded/make.py`).

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::parse;
use carma_estimate::stack::Stack;
use carma_estimate::synthesis::events;
use carma_estimate::trace::{Recording, Replay, replay};
use carma_estimate::training::Training;

fn replayed(events: impl IntoIterator<Item = carma_estimate::trace::Event>) -> Replay {
    replay(events, AllocatorSettings::default(), &Stack::built_in()[0]).unwrap()
}

#[test]
fn static_events_agree_with_recorded_ones_for_each_kind_of_layer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut compared = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let recording = Recording::read(BufReader::new(File::open(file.with_extension("trace")).unwrap())).unwrap();
        let recorded = replayed(recording.devices[0].iter().copied());
        let training = Training { batch: 64, ..Training::default() };
        let description = parse::read(&fs::read(&file).unwrap(), None, &training).unwrap();
        let made_up = replayed(events(&description.model, &training));
        let (dry, quick) = (recorded.peak_tensors, made_up.peak_tensors);
        assert!(dry.abs_diff(quick) * 50 <= dry, "{}: {dry} bytes of tensors recorded, {quick} made up", file.display());
        compared += 1;
    }
    assert_eq!(compared, 15);
}
