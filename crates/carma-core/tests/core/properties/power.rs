//! Power budgets, and jobs that wanted their GPUs for themselves: no job is launched past the one or beside the other.

use carma_core::*;

use super::world::World;

/// The power of a server's GPUs by the published fit, computed apart from the scheduler.
fn draw(server: &Server) -> f64 {
    let devices = server.devices.iter().filter(|device| !device.lost);
    let watts = devices.map(|device| {
        let shares = device.tenants.iter().map(|tenant| {
            let InterferenceProfile { smact, drama, .. } = tenant.profile;
            ((30.6 + 242.2 * smact + 75.1 * drama - 52.0) / 348.0).clamp(0.0, 1.0)
        });
        let above = 348.0 * (1.0 - shares.map(|share| 1.0 - share).product::<f64>());
        let idle = if device.id().instance.is_some() { 0.0 } else { 52.0 };
        (idle + above).min(device.power_limit.map_or(f64::INFINITY, |limit| limit.0))
    });
    watts.sum()
}

impl World {
    /// Launches keep every server within its budget.
    pub(super) fn check_power(&self, actions: &[Action]) {
        let Some(budget) = self.scheduler().config().power.budget else { return };
        for (attempt, granted) in launched(actions) {
            let server = self.scheduler().fleet().server(granted.device.server()).unwrap();
            assert!(draw(server) <= budget.0 + 1e-3, "{attempt} brings {} to {} W of {budget}", server.spec.id, draw(server));
        }
    }

    /// No job is launched beside a job that wanted its GPUs for itself, unless that one is idle and its compute is lent.
    pub(super) fn check_exclusive(&self, actions: &[Action]) {
        for (attempt, granted) in launched(actions) {
            let device = self.scheduler().fleet().device(granted.device).unwrap();
            for tenant in device.tenants.iter().filter(|tenant| tenant.attempt != attempt) {
                let job = self.scheduler().job(tenant.attempt.job).unwrap();
                let lent = job.state.active().unwrap().idle.is_some_and(|idle| idle.lent);
                assert!(!job.spec.exclusive || lent, "{attempt} joined {} on {}", tenant.attempt, granted.device);
            }
        }
    }
}

fn launched(actions: &[Action]) -> impl Iterator<Item = (AttemptId, &Granted)> {
    actions.iter().flat_map(|action| match action {
        Action::Launch { attempt, placement, .. } => placement.devices.iter().map(|granted| (*attempt, granted)).collect(),
        _ => Vec::new(),
    })
}
