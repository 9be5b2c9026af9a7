//! The holders of a GPU's memory when it ran out, from PyTorch's message and the last reading of the GPU.

use carma_core::MiB;

use super::blame::Blame;
use super::evidence::DeviceFacts;

/// The memory of a GPU when it ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryAtFailure {
    /// The failed allocation, if known.
    pub(super) wanted: Option<MiB>,
    total: MiB,
    free: MiB,
    own: MiB,
    /// Memory that may be the program's own context, which its message leaves out.
    context: MiB,
}

/// The largest context with its libraries, which PyTorch does not count.
const MAX_CONTEXT: MiB = MiB(1536);

impl MemoryAtFailure {
    /// From PyTorch's message, of any version.
    pub(super) fn from_message(message: &str) -> Option<Self> {
        // It was "capacty" in 2.1.
        let total = ["total capacity of ", "total capacty of "].iter().find_map(|words| size_after(message, words));
        let total = total.or_else(|| size_before(message, " total capacity"))?;
        let free = size_after(message, "of which ").or_else(|| size_before(message, " free"))?;
        let (own, context) = if let Some(own) = size_after(message, "this process has ") {
            (own, MiB::ZERO)
        } else {
            // Before 2.1, and in containers, where PyTorch cannot find its own process.
            let parts = || Some(size_before(message, " is allocated by PyTorch")? + size_before(message, " is reserved by PyTorch")?);
            (size_before(message, " reserved in total").or_else(parts)?, MAX_CONTEXT)
        };
        Some(Self { wanted: size_after(message, "Tried to allocate "), total, free, own, context })
    }

    /// From the attempt's GPU with the least free memory.
    pub(super) fn from_devices(devices: &[DeviceFacts]) -> Option<Self> {
        let known = |device: &DeviceFacts| {
            Some(Self { wanted: None, total: device.memory_total?, free: device.free()?, own: device.own_memory?, context: MiB::ZERO })
        };
        devices.iter().filter_map(known).min_by_key(|seen| seen.free)
    }

    fn others(&self) -> MiB {
        self.total - self.free - self.own
    }

    /// The blame: on the job if it wanted more than its reservation, or more than the GPU has. Unknown if it might have fitted
    /// without the others.
    pub(super) fn blame(&self, reserved: Option<MiB>) -> Option<Blame> {
        // Contexts and driver memory do not count.
        let alone = (self.others() - self.context).0.saturating_mul(20) < self.total.0;
        match self.wanted {
            _ if alone => Some(Blame::Job),
            Some(wanted) if self.own + wanted > reserved.unwrap_or(self.total).min(self.total) => Some(Blame::Job),
            Some(_) => Some(Blame::OtherProcesses),
            None => None,
        }
    }

    /// The memory it would have needed, if known.
    pub(super) fn needed(&self) -> Option<MiB> {
        self.wanted.map(|wanted| self.own + wanted)
    }

    /// A description for people.
    pub(super) fn describe(&self) -> String {
        let gib = |size: MiB| format!("{:.1}", size.0 as f64 / 1024.0);
        let wanted = self.wanted.map_or_else(String::new, |wanted| format!("it requested {} GiB more; ", gib(wanted)));
        let (total, own, others, free) = (gib(self.total), gib(self.own), gib(self.others()), gib(self.free));
        format!("{wanted}it used {own} of the GPU's {total} GiB, other processes used {others}, and {free} was free")
    }
}

/// The size after these words.
fn size_after(text: &str, words: &str) -> Option<MiB> {
    let (_, rest) = text.split_once(words)?;
    let mut parts = rest.split_whitespace();
    size(parts.next()?, parts.next()?)
}

/// The size before these words.
fn size_before(text: &str, words: &str) -> Option<MiB> {
    let (before, _) = text.split_once(words)?;
    let mut parts = before.split_whitespace().rev();
    let unit = parts.next()?;
    size(parts.next()?, unit)
}

fn size(number: &str, unit: &str) -> Option<MiB> {
    let mib = match unit.trim_end_matches(|letter: char| !letter.is_ascii_alphabetic()) {
        "bytes" => 1.0 / 1_048_576.0,
        "KiB" => 1.0 / 1024.0,
        "MiB" => 1.0,
        "GiB" => 1024.0,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number)).map(|number| MiB((number * mib).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_1_13: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB total capacity; 36.90 GiB already allocated; 1.19 GiB free; 38.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.";
    const OF_2_1: &str = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 23.69 GiB of which 17.06 MiB is free. Process 12 has 12.00 GiB memory in use. Including non-PyTorch memory, this process has 11.66 GiB memory in use. Of the allocated memory 10.90 GiB is allocated by PyTorch, and 479.07 MiB is reserved by PyTorch but unallocated.";

    #[test]
    fn all_versions_of_pytorch_are_understood() {
        let old = MemoryAtFailure::from_message(OF_1_13).unwrap();
        assert_eq!((old.wanted, old.total, old.free, old.own), (Some(MiB(2048)), MiB(40_540), MiB(1219), MiB(38_912)));
        assert_eq!((old.blame(None), old.needed()), (Some(Blame::Job), Some(MiB(40_960))));
        let new = MemoryAtFailure::from_message(OF_2_1).unwrap();
        assert_eq!(new.blame(None), Some(Blame::OtherProcesses));
        assert_eq!(new.blame(Some(MiB(12 * 1024))), Some(Blame::OtherProcesses), "it had less than it was reserved");
        assert_eq!(new.blame(Some(MiB(4096))), Some(Blame::Job), "it took more than it was reserved");
        assert_eq!(
            new.describe(),
            "it requested 0.0 GiB more; it used 11.7 of the GPU's 23.7 GiB, other processes used 12.0, and 0.0 was free"
        );
        assert_eq!(MemoryAtFailure::from_message("CUDA out of memory. Tried to allocate lots"), None);
    }

    #[test]
    fn a_job_larger_than_the_gpu_is_its_own_fault() {
        let told = OF_2_1.replace("allocate 20.00 MiB", "allocate 20.00 GiB");
        assert_eq!(MemoryAtFailure::from_message(&told).unwrap().blame(None), Some(Blame::Job));
    }
}
