//! Scripts with `#CARMA` and `#SBATCH` lines, job files and task files. What is read is validated, sent and expanded.

#![no_main]

use std::collections::BTreeMap;

use carma_manager::api::Submission;
use carma_manager::submission::{Caller, Source};
use jiff::civil::date;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

/// Members of an array or a sweep that are looked at.
const MEMBERS: usize = 100;

fuzz_target!(|text: &str| {
    let now = || date(2026, 11, 18).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).expect("it is in range");
    let caller = Caller { directory: "/home/ada".into(), environment: BTreeMap::new(), umask: None, now };
    for name in ["train.sh", "jobs.toml", "task.rad"] {
        let source = Source::Text { name, text, arguments: Vec::new() };
        let Ok((submissions, _)) = source.submissions(&[], &caller) else { continue };
        for parsed in submissions {
            let valid = parsed.into_valid();
            assert_eq!(valid.requests().len(), valid.jobs());
            valid.requests().take(MEMBERS).for_each(drop);
            let sent = serde_json::to_string(valid.as_sent()).expect("a submission can be sent");
            let received: Submission = serde_json::from_str(&sent).expect("what is sent can be read");
            received.validate().expect("what the client accepts, the server accepts");
        }
    }
});
