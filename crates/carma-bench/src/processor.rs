//! Time on a processor, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Time that a process has been on a processor, over all its threads.
pub fn processor_time(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default()).map(|text| on_processor(&text)).sum()
}

/// The same for the threads of each name.
pub fn thread_times(pid: u32) -> BTreeMap<String, Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut times = BTreeMap::new();
    for folder in threads.map(|thread| thread.path()) {
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        *times.entry(text("comm").trim().to_owned()).or_default() += on_processor(&text("schedstat"));
    }
    times
}

/// The first of a thread's scheduling statistics.
fn on_processor(statistics: &str) -> Duration {
    Duration::from_nanos(statistics.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default())
}
