//! Limits of MPS clients.

use std::ffi::OsString;

use carma_core::{Limits, MiB};

use super::control::MpsControl;

/// Limits of a client on its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientLimits {
    /// Share of the multiprocessors in percent; unset: all.
    pub active_threads: Option<u8>,
    /// Memory limit; unset: no limit.
    pub memory: Option<MiB>,
}

impl ClientLimits {
    /// The limits of a launch; unset if it is not an MPS client.
    pub const fn of(limits: Limits) -> Option<Self> {
        match limits {
            Limits::Mps { active_threads, memory } => Some(Self { active_threads, memory }),
            Limits::Streams | Limits::Driver { .. } | Limits::Mig { .. } => None,
        }
    }

    /// The environment of a client with these limits.
    pub fn environment(self, control: &MpsControl) -> Vec<(&'static str, OsString)> {
        let threads = self.active_threads.map(|percent| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string().into()));
        // The daemon sees only one GPU, so its clients see it as number 0.
        let memory = self.memory.map(|memory| ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={}M", memory.0).into()));
        control.environment().into_iter().chain(threads).chain(memory).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_variables() {
        let control = MpsControl::new("GPU-1".parse().unwrap(), "/run/carma/mps/0", "/var/log/carma/mps/0");
        let limits = ClientLimits::of(Limits::Mps { active_threads: Some(50), memory: Some(MiB(4096)) }).unwrap();
        let text: Vec<String> =
            limits.environment(&control).into_iter().map(|(name, value)| format!("{name}={}", value.display())).collect();
        assert_eq!(
            text,
            [
                "CUDA_MPS_PIPE_DIRECTORY=/run/carma/mps/0",
                "CUDA_MPS_LOG_DIRECTORY=/var/log/carma/mps/0",
                "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                "CUDA_VISIBLE_DEVICES=GPU-1",
                "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
                "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M",
            ]
        );
        assert_eq!(ClientLimits::default().environment(&control).len(), 4);
        assert_eq!(ClientLimits::of(Limits::Streams), None);
    }
}
