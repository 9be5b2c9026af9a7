//! The output of `dcgmi`, of dcgm-exporter and of the MPS control daemon.

#![no_main]

use std::time::Instant;

use carma_gpu::mps::{memory_limit, percentage, process_numbers, server_state};
use carma_gpu::profiling::dcgmi::{Monitor, gpus, instances};
use carma_gpu::profiling::read_counters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut monitor = Monitor::default();
    for line in text.lines() {
        let _ = monitor.read(line);
    }
    let _ = (gpus(text), instances(text), read_counters(text, Instant::now()));
    let _ = (server_state(text), process_numbers(text), percentage(text), memory_limit(text));
});
