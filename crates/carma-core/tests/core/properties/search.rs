//! The search skips what cannot win; an exhaustive search must find the same.

use carma_core::*;
use proptest::prelude::*;

use crate::lab::{Lab, job, window};

/// A device's memory in GiB, how much of it is used, and how busy it is; both in hundredths.
type Load = (u64, u64, u64);

fn servers() -> impl Strategy<Value = Vec<Vec<Load>>> {
    let load = (prop::sample::select(vec![11, 40, 80]), 10_u64..100, 0_u64..100);
    prop::collection::vec(prop::collection::vec(load, 1..6), 1..12)
}

fn memory_of((gib, ..): Load) -> u64 {
    gib * 1024
}

fn used_of(load: Load) -> u64 {
    // Never idle: more than the 1,024 MiB that an idle device may show.
    memory_of(load) * load.1 / 100 + 1_025
}

/// Free memory less the guard; `None` where the device is too small, too full, or too busy by the paper's screen.
fn room(load: Load, needed: u64) -> Option<u64> {
    let smact = load.2 as f64 / 100.0;
    let busy = smact >= 0.80 && (smact / 2.0 >= 0.45 || smact / 2.0 >= 0.40);
    let available = memory_of(load).checked_sub(512 + used_of(load))?;
    (available >= needed && !busy).then_some(available)
}

/// An exhaustive search: in each server the best devices, then the server whose worst device is best.
fn expected(servers: &[Vec<Load>], policy: &str, gpus: usize, needed: u64) -> Option<(usize, Vec<u16>)> {
    let score = |load: Load, available: u64| match policy {
        "ff" => 0,
        "bf" => available,
        "magm" => u64::MAX - available,
        _ => load.2,
    };
    let in_server = |place: usize| {
        let mut devices: Vec<(u64, u16)> =
            (0..).zip(&servers[place]).filter_map(|(gpu, load)| Some((score(*load, room(*load, needed)?), gpu))).collect();
        devices.sort_unstable();
        let worst = devices.get(gpus - 1)?.0;
        Some((worst, place, devices[..gpus].iter().map(|(_, gpu)| *gpu).collect::<Vec<u16>>()))
    };
    (0..servers.len()).filter_map(in_server).min().map(|(_, place, devices)| (place, devices))
}

proptest! {
    #[test]
    fn the_search_agrees_with_an_exhaustive_search(
        servers in servers(),
        policy in prop::sample::select(vec!["ff", "bf", "magm", "lug"]),
        gpus in 1_usize..4,
        need in 100_u64..40_000,
    ) {
        let mut lab = Lab::with_policy(Preset::Paper, policy, 0);
        for (server, loads) in (1..).map(ServerId).zip(&servers) {
            lab.event(Event::ServerAttached(ServerSpec::new(server)));
            for (ordinal, load) in (0..).zip(loads) {
                let device = DeviceId::gpu(server, ordinal);
                let smact = load.2 as f64 / 100.0;
                lab.event(Event::GpuAttached(DeviceSpec::new(device, MiB(memory_of(*load)))));
                lab.event(Event::GpuWindow { device, window: window(used_of(*load), smact, smact / 2.0, smact / 2.0) });
            }
        }
        let spec = JobSpec { gpus: gpus as u32, memory: MemoryNeed::known(MiB(need)), ..job(1) };
        lab.event(Event::JobSubmitted(Box::new(spec)));
        let found = lab.state(1).active().map(|active| {
            let devices = active.placement.devices.iter().map(|granted| granted.device.gpu.ordinal).collect();
            (active.placement.server.0 as usize - 1, devices)
        });
        prop_assert_eq!(found, expected(&servers, policy, gpus, need + 2_048));
    }
}
