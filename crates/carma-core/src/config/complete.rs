//! A configuration written out in full, every key with the value in force.

use super::Config;
use super::settings::{
    AdmissionSettings, GateSettings, MpsSettings, RecoverySettings, RiskSettings, ScreenSettings, Settings, WindowSettings,
};

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let Config { preset, mapping, window, risk, screen, admission, gate, queue, recovery, mps, quotas, .. } = config;
        let Config { forecast, slots, correction, idle_holders, power, modes, .. } = config;
        Self {
            preset: Some(*preset),
            policy: Some(mapping.to_string()),
            window: Some(WindowSettings {
                length: Some(window.rule.length.get()),
                period: Some(window.rule.period.get()),
                stale_after: Some(window.stale_after.get()),
                first: Some(window.first),
            }),
            risk: Some(RiskSettings { mean: Some(risk.mean), median: Some(risk.median), p95: Some(risk.p95), ema: Some(risk.ema) }),
            screen: Some(ScreenSettings {
                enabled: Some(screen.enabled),
                smact: Some(screen.smact.limit().get()),
                smocc: screen.smocc.map(f64::from),
                drama: screen.drama.map(f64::from),
                utilisation: Some(screen.utilisation.get()),
            }),
            admission: Some(AdmissionSettings {
                margin: Some(admission.margin.0 as f64),
                guard: Some(admission.guard.0 as f64),
                guard_share: Some(admission.guard_share.get()),
                floor: Some(admission.floor.0 as f64),
                idle_memory: Some(admission.idle_memory.0 as f64),
                jobs_per_gpu: Some(admission.jobs_per_gpu.unwrap_or(0).into()),
                utilisation_cap: Some(admission.utilisation_cap.get()),
                reservations: Some(admission.reservations),
                idle_first: Some(admission.idle_first),
                foreign: Some(admission.foreign),
            }),
            gate: Some(GateSettings {
                observe: Some(gate.observe.get()),
                confirmed: Some(gate.confirmed.get()),
                patience: Some(gate.patience.unwrap_or_default().get()),
            }),
            queue: Some(queue.into()),
            recovery: Some(RecoverySettings {
                ladder: Some(recovery.ladder.clone()),
                suspend_collocation: Some(recovery.suspend_collocation),
                displacements: Some(recovery.displacements.into()),
            }),
            mps: Some(MpsSettings { active_threads: Some(mps.active_threads.unwrap_or(100).into()), limit_memory: Some(mps.limit_memory) }),
            quotas: Some(quotas.into()),
            forecast: Some(forecast.into()),
            slots: Some(slots.into()),
            correction: Some(correction.into()),
            idle_holders: Some(idle_holders.into()),
            power: Some(power.into()),
            modes: Some(modes.into()),
        }
    }
}
