//! Each GPU: what the driver says of it, by itself and over a second.

use std::thread;
use std::time::{Duration, Instant};

use carma_core::MiB;
use carma_format::Terminal;
use carma_gpu::{Driver, Gpu, Inventory, Monitor, ProcessActivity, Reading, mig, ownership};

use super::check::Check;

/// The time between two readings.
const PAUSE: Duration = Duration::from_millis(1500);
/// Memory of the driver itself, and of contexts that it lists late.
const TOLERANCE: MiB = MiB(1024);
/// The counter of energy and the power are read at different moments.
const ENERGY: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// `speed`: how much faster than real time the GPUs run; 1 for real ones.
pub(super) fn checks(driver: &Driver, inventory: &Inventory, speed: f64) -> Vec<Check> {
    let uuids: Vec<_> = inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    let read = || {
        let began = Instant::now();
        let (observations, _) = Monitor::default().sample(driver, &uuids);
        let readings: Vec<_> = observations.into_iter().map(|observation| observation.reading.map_err(|error| error.to_string())).collect();
        (began, began.elapsed(), readings)
    };
    let (first_at, _, first) = read();
    thread::sleep(PAUSE);
    let (second_at, took, second) = read();
    let activities = driver.process_activity(&uuids, PAUSE);
    let silent = driver.watch(&uuids).map(|watch| watch.silent.clone());
    let mut checks = vec![Check::of(
        took < Duration::from_millis(500),
        "driver",
        "one reading of all GPUs takes less than half a second",
        format!("{:.1} ms for {}", took.as_secs_f64() * 1000.0, carma_format::count(uuids.len(), "GPU")),
    )];
    for (place, gpu) in inventory.gpus.iter().enumerate() {
        let subject = format!("GPU {}", gpu.index);
        let about = |assumption: &str, holds, shown: String| Check::of(holds, subject.clone(), assumption, shown);
        let (first, second) = (first.get(place).cloned(), second.get(place).cloned());
        let (Some(Ok(first)), Some(Ok(second))) = (&first, &second) else {
            let why = [first, second].into_iter().flatten().find_map(Result::err).unwrap_or_default();
            checks.push(about("it answers", false, why));
            continue;
        };
        checks.push(about("it answers", true, format!("{}, {}, compute capability {}", gpu.name, gpu.memory, gpu.capability)));
        checks.extend(values(&subject, gpu, second));
        checks.extend(memory(&subject, gpu, second));
        checks.push(energy(&subject, gpu, first, second, (second_at - first_at).as_secs_f64() * speed));
        checks.push(match activities.get(place).map(|(_, activity)| activity) {
            _ if second.processes.is_empty() => {
                Check::unknown(subject.clone(), "the driver reports the activity of processes", "no process is on it")
            }
            Some(Ok(ProcessActivity::Known(known))) => {
                about("the driver reports the activity of processes", true, format!("{} active of {}", known.len(), second.processes.len()))
            }
            Some(Ok(ProcessActivity::Unknown)) | None => {
                about("the driver reports the activity of processes", false, "not supported".to_owned())
            }
            Some(Err(error)) => about("the driver reports the activity of processes", false, error.to_string()),
        });
        checks.push(match &silent {
            Ok(silent) => {
                let told = !silent.contains(&gpu.uuid);
                about("Xid and ECC events can be registered", told, if told { "registered" } else { "not supported" }.to_owned())
            }
            Err(error) => about("Xid and ECC events can be registered", false, error.to_string()),
        });
        let limits = driver.limits_memory(&gpu.uuid);
        let shown = if limits { "the driver answers; limits are first set with a job" } else { "it has no such call, or not for this GPU" };
        checks.push(about("the driver limits memory of control groups (615 and later)", limits, shown.to_owned()));
        checks.extend(instances(driver, &subject, gpu, second));
    }
    checks
}

/// Values that not every GPU has.
fn values(subject: &str, gpu: &Gpu, reading: &Reading) -> Vec<Check> {
    let value = |name: &str, value: Option<String>| {
        Check::of(value.is_some(), subject, format!("it reports its {name}"), value.unwrap_or_else(|| "not supported".to_owned()))
    };
    let throttling: Vec<&str> = reading.throttling.iter().map(|reason| reason.name()).collect();
    let cut = gpu.mig == Some(true);
    let utilisation = reading.utilisation.map(|share| format!("{:.0} %", share.get() * 100.0));
    let mut checks = vec![
        value("power", reading.power.map(|power| format!("{:.0} W", power.0))),
        value("temperature", reading.temperature.map(|degrees| format!("{degrees} {}", Terminal::current().glyphs().celsius))),
        value("clock", reading.clock.map(|clock| format!("{clock} MHz"))),
        value("uncorrected memory errors", reading.uncorrected.map(|errors| errors.to_string())),
        Check::of(
            throttling.is_empty(),
            subject,
            "it is not throttled now",
            if throttling.is_empty() { "no reason given".to_owned() } else { throttling.join(", ") },
        ),
    ];
    checks.push(if cut && utilisation.is_none() {
        Check::unknown(subject, "it reports its utilisation", "MIG is on: drivers report none then")
    } else {
        value("utilisation", utilisation)
    });
    checks
}

/// The memory of processes against that of the GPU, and whose processes they are.
fn memory(subject: &str, gpu: &Gpu, reading: &Reading) -> Vec<Check> {
    let sums = "the memory of its processes sums up to that of the GPU";
    let owners = "all of its processes can be seen in /proc";
    if reading.processes.is_empty() {
        let shown = format!("{} in use without a process", reading.memory_used);
        let idle = Check::of(reading.memory_used <= TOLERANCE, subject, "without processes, little of its memory is in use", shown);
        return vec![idle, Check::unknown(subject, sums, "no process is on it"), Check::unknown(subject, owners, "no process is on it")];
    }
    let hidden = reading.processes.iter().filter(|process| ownership(process.pid).is_none()).count();
    let own = rustix::process::geteuid().as_raw();
    let others = reading.processes.iter().filter_map(|process| ownership(process.pid)).filter(|owner| owner.uid != own).count();
    let shown =
        format!("{} listed, {others} of other users, {hidden} not in /proc", carma_format::count(reading.processes.len(), "process"));
    let summed = match reading.unaccounted() {
        None => Check::failed(subject, sums, "the driver does not report the memory of all processes"),
        Some(rest) => {
            let all = reading.memory_used;
            Check::of(
                rest <= TOLERANCE,
                subject,
                sums,
                format!("{all} in use, {rest} of it of no process; the driver reserves {}", gpu.reserved),
            )
        }
    };
    let seen = Check::of(hidden == 0, subject, owners, shown);
    let root = rustix::process::geteuid().is_root();
    let lists_all = "an ordinary user gets the processes of all users from the driver";
    let listed = match (root, others) {
        (true, _) => Check::unknown(subject, lists_all, "this is root: run it as an ordinary user as well"),
        (false, 0) => Check::unknown(subject, lists_all, "no process of another user is listed; there may be none"),
        (false, _) => Check::held(subject, lists_all, format!("{others} of other users")),
    };
    vec![summed, seen, listed]
}

/// The counter of energy against the power over the time between two readings.
fn energy(subject: &str, gpu: &Gpu, first: &Reading, second: &Reading, seconds: f64) -> Check {
    let assumption = "its energy counter agrees with its power";
    let (Some(before), Some(after)) = (first.energy, second.energy) else {
        return Check::failed(subject, assumption, "it has no energy counter: energy is summed from power");
    };
    let power = [first.power, second.power].map(|power| power.map(|power| power.0));
    let ([Some(one), Some(two)], false) = (power, seconds <= 0.0) else {
        return Check::unknown(subject, assumption, "it reports no power");
    };
    let (counted, drawn) = ((after - before) / seconds, f64::midpoint(one, two));
    let limit = gpu.power_limit.map_or(String::new(), |limit| format!(", limit {:.0} W", limit.0));
    Check::of(
        ENERGY.contains(&(counted / drawn.max(1.0))),
        subject,
        assumption,
        format!("{counted:.0} W by the counter, {drawn:.0} W by the sensor{limit}"),
    )
}

/// The numbers of MIG instances.
fn instances(driver: &Driver, subject: &str, gpu: &Gpu, reading: &Reading) -> Vec<Check> {
    let assumption = "MIG instances have devices of their own, with numbers that processes name";
    match gpu.mig {
        None => Vec::new(),
        Some(false) => vec![Check::unknown(subject, assumption, "MIG is off, and is not switched on for a check")],
        Some(true) => match mig::list(driver, &gpu.uuid) {
            Err(error) => vec![Check::failed(subject, assumption, error.to_string())],
            Ok(state) if state.instances.is_empty() => vec![Check::unknown(subject, assumption, "MIG is on, and it has no instance")],
            Ok(state) => {
                let numbers: Vec<u32> = state.instances.iter().map(|instance| instance.gpu_instance).collect();
                let devices = state.instances.iter().all(|instance| !instance.compute.is_empty());
                let named = reading.processes.iter().filter_map(|process| process.gpu_instance).all(|number| numbers.contains(&number));
                let shown = format!("GPU instances {numbers:?}, {}", carma_format::count(reading.processes.len(), "process"));
                vec![Check::of(devices && named, subject, assumption, shown)]
            }
        },
    }
}
