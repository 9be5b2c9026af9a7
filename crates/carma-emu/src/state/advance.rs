//! Time: everything is counted up to now whenever somebody looks.

use super::records::{ContextKind, Engine};
use super::started;
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
        let mut known: Vec<(u32, u64, bool)> = Vec::new();
        for context in self.contexts() {
            if !known.iter().any(|(pid, born, _)| (*pid, *born) == (context.pid, context.born)) {
                known.push((context.pid, context.born, started(context.pid) == Some(context.born)));
            }
        }
        let dead = |pid: u32, born: u64| known.contains(&(pid, born, false));
        let servers: Vec<u32> = self
            .contexts()
            .iter()
            .filter(|context| context.kind() == ContextKind::MpsServer && dead(context.pid, context.born))
            .map(|context| context.pid)
            .collect();
        self.detach(|context| dead(context.pid, context.born));
        if !servers.is_empty() {
            for context in self.contexts_mut().iter_mut().filter(|context| servers.contains(&context.server)) {
                (context.fault, context.busy) = (MPS_RPC_FAILURE, 0);
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
