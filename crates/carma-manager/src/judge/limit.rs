//! Whether an attempt ran out of memory by its own limit, or because it had borrowed memory, while its GPU had more.

use carma_core::{Limits, MiB};

use super::evidence::DeviceFacts;

impl DeviceFacts {
    /// What its limits have to do with a failed allocation of this size, if it is known; unset: nothing.
    pub(super) fn limited(&self, wanted: Option<MiB>) -> Option<String> {
        self.reached_limit(wanted).or_else(|| self.lost_borrowed_memory())
    }

    /// Of the limit and the free memory, the smaller one makes an allocation fail.
    fn reached_limit(&self, wanted: Option<MiB>) -> Option<String> {
        let (limit, by) = match self.limits {
            Limits::Driver { memory } => (memory, "the driver"),
            Limits::Mps { memory: Some(memory), .. } => (memory, "MPS"),
            Limits::Mps { memory: None, .. } | Limits::Streams | Limits::Mig { .. } => return None,
        };
        let (own, free) = (self.own_memory?, self.free()?);
        let room = limit - own;
        let reached = room < free && wanted.is_none_or(|wanted| wanted > room);
        let device = self.device.label();
        reached.then(|| format!("it reached its limit of {limit}, enforced by {by}: it used {own} on {device}, where {free} was free"))
    }

    /// Memory beyond the reservation is taken back when others need theirs.
    fn lost_borrowed_memory(&self) -> Option<String> {
        let Limits::Driver { .. } = self.limits else { return None };
        let (peak, reserved) = (self.peak?, self.reserved?);
        let device = self.device.label();
        (peak > reserved).then(|| {
            let borrowed = peak - reserved;
            format!("it used {borrowed} on {device} beyond its reserved {reserved}, and other jobs needed their memory")
        })
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{DeviceId, ServerId};

    use super::*;

    fn facts(limits: Limits, own: u64, used: u64) -> DeviceFacts {
        let gib = |size: u64| Some(MiB(size << 10));
        DeviceFacts {
            limits,
            memory_total: gib(40),
            memory_used: gib(used),
            own_memory: gib(own),
            peak: gib(own),
            reserved: gib(10),
            ..DeviceFacts::new(DeviceId::gpu(ServerId(0), 0))
        }
    }

    #[test]
    fn a_limit_counts_only_where_the_gpu_had_more() {
        let limit = Limits::Driver { memory: MiB(10 << 10) };
        let reached = facts(limit, 9, 23).limited(None).unwrap();
        assert_eq!(reached, "it reached its limit of 10.0 GiB, enforced by the driver: it used 9.0 GiB on gpu0, where 17.0 GiB was free");
        assert_eq!(facts(limit, 9, 23).limited(Some(MiB(512))), None, "so much it may have");
        assert_eq!(facts(limit, 9, 40).limited(None), None, "others took all there is");
        let by_mps = Limits::Mps { active_threads: None, memory: Some(MiB(10 << 10)) };
        assert!(facts(by_mps, 9, 23).limited(Some(MiB(2048))).unwrap().contains("enforced by MPS"));
        assert_eq!(facts(Limits::Streams, 9, 23).limited(None), None);
    }

    #[test]
    fn a_borrower_on_a_full_gpu_has_only_what_is_reserved() {
        let whole = Limits::Driver { memory: MiB(40 << 10) };
        assert!(facts(whole, 25, 40).limited(None).unwrap().contains("used 15.0 GiB"));
        assert_eq!(facts(whole, 10, 40).limited(None), None, "it kept to its reservation");
    }
}
