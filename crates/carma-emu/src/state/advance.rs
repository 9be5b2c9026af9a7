//! Time: everything is counted up to now whenever somebody looks.

use std::collections::HashSet;

use carma_gpu::process_standing;

use super::records::{ContextKind, ContextRecord, Engine};
use super::{INSTANCES, State};

/// Seconds between looks for processes that are gone.
const SWEEP: f64 = 0.005;
/// What a client's calls answer when its MPS server is gone: `cudaErrorMpsRpcFailure`.
const MPS_RPC_FAILURE: u32 = 806;

impl Engine {
    fn advance(&mut self, span: f64) {
        self.joules += self.watts * span;
        self.level_seconds.iter_mut().zip(self.levels).for_each(|(sum, level)| *sum += level * span);
    }
}

impl State<'_> {
    /// Counts up to the time of the system's clock, and takes off the processes that have gone.
    pub(super) fn catch_up(&mut self, clock: f64) {
        self.advance((clock - self.header.born) * self.header.speed);
        // A clock that went backwards is one of another boot.
        if (0.0..SWEEP).contains(&(clock - self.header.swept)) {
            return;
        }
        self.header.swept = clock;
        let processes: HashSet<(u32, u64)> = self.contexts().iter().map(|context| (context.pid, context.born)).collect();
        let (mut dead, mut stopped) = (HashSet::new(), HashSet::new());
        for (pid, born) in processes {
            match process_standing(pid) {
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
        if span <= 0.0 {
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
