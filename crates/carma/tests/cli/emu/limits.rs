//! Memory limits that the driver enforces, and what happens without them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use carma_emu::{DriverVersion, Machine};
use carma_gpu::{DEADLINE, DeviceUuid, Driver, MemoryLimits};
use carma_testing::{ControlGroup, need};
use tempfile::TempDir;

const GIB: u64 = 1 << 30;

struct Bench {
    folder: TempDir,
    machine: Machine,
    driver: Driver,
    gpu: DeviceUuid,
}

impl Bench {
    /// A GPU of 40 GiB with driver 615.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine =
            Machine::create(folder.path(), &"1xA100-40GB".parse().unwrap(), 60.0, Some(Path::new(env!("CARGO_BIN_EXE_carma")))).unwrap();
        machine.set_driver(DriverVersion::R615).unwrap();
        let driver = Driver::open(Some(&machine.library()), DEADLINE).unwrap();
        let gpu = machine.with(|state| state.gpus[0].uuid.get().to_owned()).unwrap().parse().unwrap();
        Self { folder, machine, driver, gpu }
    }

    /// A process in a group that wants this much memory.
    fn process(&self, group: &ControlGroup, gibibytes: u64) -> Command {
        let mut command = Command::new("sh");
        let memory = format!("{gibibytes}GiB");
        command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(group.procs()).arg(env!("CARGO_BIN_EXE_carma"));
        command.args(["emu", "occupy", "--gpu", "0", "--memory", &memory]).env("CARMA_EMU", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A process that gets its memory.
    fn holds(&self, group: &ControlGroup, gibibytes: u64) -> Child {
        let mut child = self.process(group, gibibytes).spawn().unwrap();
        while self.machine.with(|state| state.used_by_group(0, group.path())).unwrap() < gibibytes * GIB {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {:?}", child.wait_with_output());
            thread::sleep(Duration::from_millis(5));
        }
        child
    }

    /// A process that does not.
    fn fails(&self, group: &ControlGroup, gibibytes: u64) -> Output {
        let output = self.process(group, gibibytes).output().unwrap();
        assert!(!output.status.success());
        output
    }

    fn limit(&self, group: &ControlGroup, soft: u64, hard: u64) {
        let limits = MemoryLimits { soft: soft * GIB, hard: Some(hard * GIB) };
        self.driver.set_memory_limits(&self.gpu, group.path(), limits).unwrap();
    }
}

fn is_out_of_memory(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("out of memory")
}

fn end(children: [Child; 2]) {
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_process_above_its_hard_limit_fails_alone() {
    let [good, wrong] = ["good", "wrong"].map(ControlGroup::new);
    let (good, wrong) = (need!(good), need!(wrong));
    let bench = Bench::new();
    bench.limit(&good, 15, 15);
    bench.limit(&wrong, 10, 10);
    let neighbour = bench.holds(&good, 14);
    // The GPU has room for it; its limit has not.
    let failed = bench.fails(&wrong, 12);
    assert!(is_out_of_memory(&failed), "{failed:?}");
    let within = bench.holds(&wrong, 9);
    assert!(bench.driver.memory_limits(&bench.gpu, good.path()).unwrap().unwrap().used >= 14 * GIB);
    end([neighbour, within]);
}

#[test]
fn a_borrower_is_evicted_for_guaranteed_memory() {
    let [first, second, greedy] = ["first", "second", "greedy"].map(ControlGroup::new);
    let (first, second, greedy) = (need!(first), need!(second), need!(greedy));
    let bench = Bench::new();
    bench.limit(&first, 15, 39);
    bench.limit(&second, 15, 39);
    bench.limit(&greedy, 5, 39);
    let well = bench.holds(&first, 14);
    let borrower = bench.holds(&greedy, 20);
    assert!(bench.driver.memory_limits(&bench.gpu, greedy.path()).unwrap().unwrap().borrowed() >= 15 * GIB);
    let guaranteed = bench.holds(&second, 14);
    let evicted = borrower.wait_with_output().unwrap();
    assert!(!evicted.status.success() && is_out_of_memory(&evicted), "{evicted:?}");
    assert_eq!(bench.machine.with(|state| [&first, &second, &greedy].map(|group| state.evictions(0, group.path()))).unwrap(), [0, 0, 1]);
    // One that would borrow itself evicts no other.
    let failed = bench.fails(&greedy, 20);
    assert!(is_out_of_memory(&failed), "{failed:?}");
    end([well, guaranteed]);
}

#[test]
fn without_limits_a_wrong_estimate_takes_a_neighbours_memory() {
    let [first, second, greedy] = ["first", "second", "greedy"].map(ControlGroup::new);
    let (first, second, greedy) = (need!(first), need!(second), need!(greedy));
    let bench = Bench::new();
    let well = bench.holds(&first, 14);
    let borrower = bench.holds(&greedy, 20);
    let failed = bench.fails(&second, 14);
    assert!(is_out_of_memory(&failed), "the neighbour fails: {failed:?}");
    end([well, borrower]);
}
