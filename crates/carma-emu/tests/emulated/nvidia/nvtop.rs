//! nvtop in a terminal: what it draws, against the state.

use std::process::Command;

use carma_emu::state::Place;
use carma_testing::need;
use tempfile::TempDir;

use crate::support::{Emulated, MIB, Sleeper, training, until};

/// A terminal that is closed with this.
struct Terminal(TempDir);

impl Terminal {
    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.0.path().join("socket")).args(["-f", "/dev/null"]);
        command
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").status();
    }
}

#[test]
fn nvtop_shows_every_gpu_and_process() {
    let nvidia = need!(carma_testing::nvidia());
    need!(carma_testing::program("tmux"));
    let emulated = Emulated::new("1xA100-40GB,1xRTX-3090-24GB");
    let processes = [Sleeper::new(), Sleeper::new()];
    emulated.attach(training(processes[0].pid(), 0, 12_345 * MIB));
    emulated.attach(training(processes[1].pid(), 1, 2000 * MIB));
    let terminal = Terminal(tempfile::tempdir().unwrap());
    let mut start = terminal.command();
    start.args(["new-session", "-d", "-x", "160", "-y", "50"]).envs(emulated.machine.environment()).env("HOME", terminal.0.path());
    start.env("LANG", "C.UTF-8").env_remove("CUDA_VISIBLE_DEVICES").arg(nvidia.join("root/usr/bin/nvtop")).arg("--no-plot");
    assert!(start.status().unwrap().success());
    let screen = || String::from_utf8(terminal.command().args(["capture-pane", "-p"]).output().unwrap().stdout).unwrap();
    let expected: Vec<String> = (0..2)
        .flat_map(|gpu| {
            let (name, readings, limit) =
                emulated.with(|state| (state.profile(gpu).facts.product.clone(), state.readings(gpu), state.gpus[gpu].power_limit));
            let memory = emulated.with(|state| state.memory(Place::gpu(gpu)));
            let gib = |bytes: u64| format!("{:.3}Gi", bytes as f64 / f64::from(1 << 30));
            [
                format!("Device {gpu} [{name}]"),
                format!("GPU {}MHz", readings.sm_clock),
                format!("MEM {}MHz", readings.memory_clock),
                format!("{}°C", readings.temperature),
                format!("{} / {} W", readings.milliwatts / 1000, limit / 1000),
                format!("{}%]", readings.utilisation),
                format!("{}/{}", gib(memory.used + memory.reserved), gib(memory.total)),
            ]
        })
        .collect();
    let shown = until(|| {
        let shown = screen();
        processes.iter().all(|process| shown.contains(&process.pid().to_string())).then_some(shown)
    });
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for each in &expected {
        assert!(words.contains(each.as_str()), "{each}: {shown}");
    }
    let row = |process: &Sleeper| shown.lines().find(|line| line.contains(&process.pid().to_string())).unwrap().to_owned();
    let [first, second] = [row(&processes[0]), row(&processes[1])];
    assert!(first.contains(" 0  Compute") && first.contains("12345MiB"), "{first}");
    assert!(second.contains(" 1  Compute") && second.contains("2000MiB"), "{second}");
}
