//! A GPU's memory as a bar: used by each job, reserved and unused, used by others, free.

use carma_core::{JobId, MiB};
use carma_manager::api::{GpuDetail, GpuTenant};

/// The owner of a part of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A job uses it.
    Used(JobId),
    /// Processes that the manager did not start use it.
    Others,
    /// Reserved for a job.
    Reserved(JobId),
    Free,
}

/// The meaning of each cell of a bar.
pub(super) fn cells(gpu: &GpuDetail, width: usize) -> Vec<Part> {
    let used = |tenant: &GpuTenant| tenant.memory.unwrap_or_default();
    let ours: u64 = gpu.tenants.iter().map(|tenant| used(tenant).0).sum();
    let others = MiB(gpu.memory_used.unwrap_or_default().0.saturating_sub(ours));
    let tenants = || gpu.tenants.iter();
    let parts = tenants()
        .map(|tenant| (Part::Used(tenant.attempt.job), used(tenant)))
        .chain([(Part::Others, others)])
        .chain(tenants().map(|tenant| (Part::Reserved(tenant.attempt.job), MiB(tenant.reserved.0.saturating_sub(used(tenant).0)))));
    let mut cells = Vec::with_capacity(width);
    let mut sum = 0;
    for (part, MiB(size)) in parts.filter(|(_, size)| size.0 > 0) {
        sum += size;
        let until = (sum as f64 / gpu.memory.0.max(1) as f64 * width as f64).round() as usize;
        // Every job is visible, however small; the driver's reserve is not.
        let until = if matches!(part, Part::Used(_)) { until.max(cells.len() + 1) } else { until };
        cells.resize(until.clamp(cells.len(), width.max(cells.len())), part);
    }
    cells.truncate(width);
    cells.resize(width, Part::Free);
    cells
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{gpu, tenant};
    use super::*;

    fn bar(gpu: &GpuDetail, width: usize) -> String {
        let letter = |job: JobId, first: u8| char::from(first + u8::try_from(job.0).unwrap());
        let part = |part: Part| match part {
            Part::Used(job) => letter(job, b'a'),
            Part::Reserved(job) => letter(job, b'A'),
            Part::Others => 'x',
            Part::Free => '.',
        };
        cells(gpu, width).into_iter().map(part).collect()
    }

    #[test]
    fn every_part_has_its_share_of_the_bar() {
        let tenants = vec![tenant(0, "a", 10, Some(8)), tenant(1, "b", 12, Some(10))];
        assert_eq!(bar(&gpu(0, tenants, 22), 20), "aaaabbbbbxxAB.......", "18 of ours, 4 of others, 4 more are reserved");
        assert_eq!(bar(&gpu(0, vec![tenant(0, "a", 10, None)], 0), 20), "AAAAA...............", "no sample yet");
        assert_eq!(bar(&gpu(0, Vec::new(), 0), 8), "........");
    }

    #[test]
    fn small_jobs_are_visible_and_bars_fit() {
        let mut small = gpu(0, vec![tenant(0, "a", 1, Some(0)), tenant(1, "b", 40, Some(39))], 39);
        small.tenants[0].memory = Some(MiB(100));
        assert_eq!(bar(&small, 10), "abbbbbbbbb");
        let crowd = gpu(0, (0..9).map(|job| tenant(job, "a", 10, Some(10))).collect(), 40);
        assert_eq!(bar(&crowd, 4), "abcd", "more than fits is cut");
        assert_eq!(bar(&crowd, 0), "");
    }
}
