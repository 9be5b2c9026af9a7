//! The host that the tests run on, and hosts made of files.

use std::fs;
use std::path::Path;

use carma_core::{Fraction, MiB};
use carma_manager::host::{HostWatch, Limits, Shortage};

#[test]
fn this_host_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = HostWatch::new(vec![folder.path().to_owned(), "/nonexistent".into()]);
    let first = watch.read().unwrap();
    assert_eq!(first.busy, None);
    assert!(first.cores > 0 && first.memory_total > MiB(0) && first.memory_available <= first.memory_total);
    assert!(first.disks.len() == 1 && first.disks[0].free <= first.disks[0].total, "{:?}", first.disks);
}

/// A host of an old kernel: no pressure, no control groups.
fn old_host(root: &Path, free_kib: u64, busy: u64) {
    let file = |path: &str, text: String| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("proc/meminfo", format!("MemTotal: 8388608 kB\nMemFree: {free_kib} kB\nBuffers: 0 kB\nCached: 0 kB\n"));
    file("proc/stat", format!("cpu  {busy} 0 0 1000 0 0 0\n"));
    file("proc/loadavg", "0.50 0.40 0.30 1/100 4711\n".to_owned());
}

#[test]
fn a_host_of_an_old_kernel_is_read_and_found_short() {
    let root = tempfile::tempdir().unwrap();
    old_host(root.path(), 4 << 20, 0);
    let mut watch = HostWatch::at(root.path(), Vec::new());
    let first = watch.read().unwrap();
    assert_eq!((first.memory_total, first.memory_available, first.cpu_pressure), (MiB(8192), MiB(4096), None));
    assert_eq!(first.shortage(&Limits::default()), None);
    old_host(root.path(), 1 << 10, 500);
    let second = watch.read().unwrap();
    assert_eq!(second.busy, Some(Fraction::ONE), "all that passed was busy");
    assert_eq!(second.shortage(&Limits::default()), Some(Shortage::Memory { available: MiB(1), least: MiB(1024) }));
}

#[test]
fn in_a_container_the_limits_of_its_control_group_count() {
    let root = tempfile::tempdir().unwrap();
    old_host(root.path(), 4 << 20, 0);
    let group = root.path().join("sys/fs/cgroup/pod/job");
    fs::create_dir_all(&group).unwrap();
    fs::create_dir_all(root.path().join("proc/self")).unwrap();
    fs::write(root.path().join("proc/self/cgroup"), "0::/pod/job\n").unwrap();
    fs::write(group.join("memory.max"), "1073741824\n").unwrap();
    fs::write(group.join("memory.current"), "536870912\n").unwrap();
    let reading = HostWatch::at(root.path(), Vec::new()).read().unwrap();
    assert_eq!((reading.memory_total, reading.memory_available), (MiB(1024), MiB(512)));
}

#[test]
fn unreadable_files_are_named() {
    let root = tempfile::tempdir().unwrap();
    let error = HostWatch::at(root.path(), Vec::new()).read().unwrap_err();
    assert!(error.to_string().ends_with("proc/meminfo"), "{error}");
}
