//! Time: each access advances the state to now.

use std::collections::HashSet;

use carma_gpu::process_state;

use super::records::{ContextKind, ContextRecord, Engine};
use super::{INSTANCES, State};

/// Seconds between checks for ended processes: at least, and for each process on a GPU, since each check takes time.
const SWEEP: f64 = 0.005;
const SWEEP_EACH: f64 = 0.0002;
/// The error of a client's calls when its MPS server is gone: `cudaErrorMpsRpcFailure`.
const MPS_RPC_FAILURE: u32 = 806;

impl Engine {
    fn advance(&mut self, span: f64) {
        self.joules += self.watts * span;
        self.level_seconds.iter_mut().zip(self.levels).for_each(|(sum, level)| *sum += level * span);
    }
}

impl State<'_> {
    /// Advances to the time of the system's clock, and removes processes that have ended.
    pub(crate) fn catch_up(&mut self, clock: f64) {
        // A clock that went backwards is from another boot: time continues from its last value.
        if clock < self.header.swept {
            self.header.born = clock - self.header.now / self.header.speed;
            self.header.swept = f64::NEG_INFINITY;
        }
        self.advance((clock - self.header.born) * self.header.speed);
        if clock - self.header.swept < SWEEP.max(SWEEP_EACH * self.contexts().len() as f64) {
            return;
        }
        self.header.swept = clock;
        let processes: HashSet<(u32, u64)> = self.contexts().iter().map(|context| (context.pid, context.born)).collect();
        let (mut dead, mut stopped) = (HashSet::new(), HashSet::new());
        for (pid, born) in processes {
            match process_state(pid) {
                Some((started, halted)) if started == born => drop(halted.then(|| stopped.insert(pid))),
                _ => drop(dead.insert((pid, born))),
            }
        }
        let is_dead = |context: &ContextRecord| dead.contains(&(context.pid, context.born));
        let servers = self.contexts().iter().filter(|context| context.kind() == ContextKind::MpsServer && is_dead(context));
        let servers: HashSet<u32> = servers.map(|context| context.pid).collect();
        self.detach(is_dead);
        let contexts = self.header.contexts as usize;
        for context in &mut self.table[..contexts] {
            let halted = u64::from(stopped.contains(&context.pid));
            if context.halted != halted {
                (context.halted, self.header.changed) = (halted, 1);
            }
            if servers.contains(&context.server) {
                (context.fault, self.header.changed) = (MPS_RPC_FAILURE, 1);
            }
        }
        self.settle();
    }

    fn advance(&mut self, now: f64) {
        let span = now - self.header.now;
        if span.is_nan() || span <= 0.0 {
            return;
        }
        self.header.now = now;
        for gpu in self.gpus.iter_mut() {
            gpu.engine.advance(span);
            gpu.instances[..INSTANCES].iter_mut().filter(|instance| instance.used != 0).for_each(|instance| instance.engine.advance(span));
        }
        let contexts = self.header.contexts as usize;
        self.table[..contexts].iter_mut().for_each(|context| context.work += context.speed * span);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use bytemuck::Zeroable;
    use rustix::process::{Pid, Signal, kill_process};

    use super::super::{ContextKind, GpuRecord, SharedState, started};
    use super::*;

    fn machine(folder: &std::path::Path) -> SharedState {
        let gpu = GpuRecord { power_limit: 400_000, ..GpuRecord::zeroed() };
        SharedState::create(&folder.join("state"), &[gpu], 1.0).unwrap()
    }

    fn busy(pid: u32) -> ContextRecord {
        ContextRecord { pid, busy: 1, watts: 100.0, counters: [0.5; 4], ..ContextRecord::new(ContextKind::Compute) }
    }

    #[test]
    fn time_continues_after_a_boot() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let later = |state: &mut State<'_>, by: f64| {
            state.catch_up(state.header.born + by);
            state.header.now
        };
        machine
            .with(|state| {
                assert!((later(state, 100.0) - 100.0).abs() < 1e-6);
                // The clock starts again.
                state.catch_up(3.0);
                assert!((state.header.now - 100.0).abs() < 1e-6);
                state.catch_up(5.0);
                assert!((state.header.now - 102.0).abs() < 1e-6);
                // For this access, use the real clock again.
                state.header.born = super::super::clock() - state.header.now;
            })
            .unwrap();
    }

    #[test]
    fn a_process_that_is_stopped_keeps_its_memory_and_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let (pid, raw) = (child.id(), Pid::from_child(&child));
        machine.with(|state| state.attach(ContextRecord { bytes: 1 << 30, ..busy(pid) }, started(pid).unwrap())).unwrap().unwrap();
        // The result of a minute, without a wait for it.
        let minute = |seen: fn(&State<'_>) -> (f64, f64, f64)| {
            let check = |state: &mut State<'_>| {
                let before = seen(state);
                state.advance(state.header.now + 60.0);
                let after = seen(state);
                (after.0 - before.0, after.1 - before.1, after.2)
            };
            machine.with(check).unwrap()
        };
        let seen = |state: &State<'_>| (state.contexts()[0].work, state.gpus[0].engine.joules, state.gpus[0].engine.levels[0]);
        let idle = crate::profile::Profile::all()[0].kind.idle_watts;
        let (work, joules, level) = minute(seen);
        assert!((work - 60.0).abs() < 1e-6 && (joules - 60.0 * (idle + 100.0)).abs() < 1e-3 && level > 0.0, "{work} {joules} {level}");
        let settles = |signal, halted: u64| {
            kill_process(raw, signal).unwrap();
            while machine.with(|state| state.contexts()[0].halted).unwrap() != halted {
                machine.with(|state| state.header.swept = f64::NEG_INFINITY).unwrap();
            }
        };
        settles(Signal::STOP, 1);
        let (work, joules, level) = minute(seen);
        assert!(work.abs() < 1e-9 && (joules - 60.0 * idle).abs() < 1e-3 && level.abs() < 1e-9, "{work} {joules} {level}");
        assert_eq!(machine.with(|state| state.contexts()[0].bytes).unwrap(), 1 << 30);
        settles(Signal::CONT, 0);
        assert!((minute(seen).0 - 60.0).abs() < 1e-6);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
