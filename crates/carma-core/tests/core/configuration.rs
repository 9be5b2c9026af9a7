//! Configuration: refused with the key and the allowed range, or taken as a whole.

use carma_core::*;

use crate::lab::Lab;

fn wrong(json: &str) -> String {
    let settings: Settings = serde_json::from_str(json).unwrap();
    settings.check().unwrap_err().to_string()
}

#[test]
fn bad_settings_are_refused_with_key_and_range() {
    for (json, message) in [
        (r#"{"admission":{"margin":-1}}"#, "admission.margin = -1 is not allowed: give a whole number from 0 to 1048576 MiB"),
        (r#"{"admission":{"guard":-2}}"#, "admission.guard = -2 is not allowed: give a whole number from 0 to 1048576 MiB"),
        (r#"{"admission":{"guard_share":1.5}}"#, "admission.guard_share = 1.5 is not allowed: give a number from 0 to 1"),
        (r#"{"admission":{"jobs_per_gpu":2.5}}"#, "admission.jobs_per_gpu = 2.5 is not allowed: give a whole number from 0 to 1000"),
        (r#"{"admission":{"utilisation_cap":-0.1}}"#, "admission.utilisation_cap = -0.1 is not allowed: give a number from 0 to 1"),
        (r#"{"window":{"length":0}}"#, "window.length = 0 is not allowed: give a number from 1 to 3600 s"),
        (r#"{"window":{"period":0}}"#, "window.period = 0 is not allowed: give a number from 0.01 to 60 s"),
        (r#"{"admission":{"floor":1.5}}"#, "admission.floor = 1.5 is not allowed: give a whole number from 0 to 1048576 MiB"),
        (
            r#"{"window":{"length":5,"period":10}}"#,
            "window.length = 5 is not allowed: give a number from 10 to 3600 s (window.period or more)",
        ),
        (
            r#"{"risk":{"mean":0.5}}"#,
            "risk = 0.5 + 0.3 + 0.3 + 0.2 (mean, median, p95, ema) is not allowed: give four weights from 0 to 1 that add up to 1; these add up to 1.3",
        ),
        (
            r#"{"window":{"period":45}}"#,
            "window.length = 30 is not allowed: give a number from 45 to 3600 s (window.period or more)\nwindow.stale_after = 30 is not allowed: give a number from 45 to 3600 s (window.period or more)",
        ),
        (r#"{"screen":{"smact":80}}"#, "screen.smact = 80 is not allowed: give a number from 0 to 1"),
        (r#"{"gate":{"observe":-3}}"#, "gate.observe = -3 is not allowed: give a number from 0 to 3600 s"),
        (r#"{"queue":{"backfill":-1}}"#, "queue.backfill = -1 is not allowed: give a whole number from 0 to 10000"),
        (r#"{"mps":{"active_threads":0}}"#, "mps.active_threads = 0 is not allowed: give a whole number from 1 to 100 %"),
        (r#"{"recovery":{"ladder":[{"add":0}]}}"#, "recovery.ladder = add 0 is not allowed: give 1 MiB or more to add"),
        (
            r#"{"recovery":{"ladder":[{"buckets":{"shares":[0.5,0.25],"largest_step":1}}]}}"#,
            "recovery.ladder = [0.5, 0.25] is not allowed: give rising shares from 0 to 1",
        ),
        (
            r#"{"policy":"mgam"}"#,
            "policy = \"mgam\" is not allowed: give one of carma, exclusive, rr, ff, bf, magm, lug, horus, lucid, optionally with the prefix est- or or-",
        ),
    ] {
        assert_eq!(wrong(json), message);
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    assert_eq!(wrong(r#"{"policy":"x","window":{"length":0},"admission":{"margin":-1}}"#).lines().count(), 3);
}

#[test]
fn unknown_keys_and_presets_are_refused() {
    let refused = |json: &str| serde_json::from_str::<Settings>(json).unwrap_err().to_string();
    assert!(refused(r#"{"admission":{"margn":1}}"#).starts_with("unknown field `margn`, expected one of `margin`, `doubt_margin`"));
    assert!(
        refused(r#"{"preset":"karma"}"#)
            .starts_with("unknown variant `karma`, expected one of `carma`, `standard`, `first`, `paper`, `aegis`")
    );
}

#[test]
fn bad_configuration_at_run_time_changes_nothing() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 1);
    let settings: Settings = serde_json::from_str(r#"{"window":{"length":0}}"#).unwrap();
    let refused = lab.refused(Event::ConfigurationChanged(Box::new(settings)));
    assert_eq!(refused, "the configuration is unchanged: window.length = 0 is not allowed: give a number from 1 to 3600 s");
}

#[test]
fn settings_change_a_preset_key_by_key() {
    let json = r#"{"preset":"aegis","policy":"or-lug","screen":{"enabled":false},"queue":{"backfill":7},"gate":{"timeout":60},
                   "recovery":{"ladder":[{"add":1024},{"buckets":{"shares":[0.5],"largest_step":4096}},"whole_gpu"]}}"#;
    let config = serde_json::from_str::<Settings>(json).unwrap().check().unwrap();
    let aegis = Config::from(Preset::Aegis);
    let expected = Config {
        mapping: "or-lug".parse().unwrap(),
        screen: Screen { enabled: false, ..aegis.screen },
        queue: QueueConfig { backfill: Some(7), ..aegis.queue },
        gate: GateConfig { timeout: Some(Seconds::from_secs(60)), ..aegis.gate },
        recovery: RecoveryConfig {
            ladder: vec![
                Rung::Add(MiB(1024)),
                Rung::Buckets { shares: vec![Fraction::clamped(0.5)], largest_step: MiB(4096) },
                Rung::WholeGpu,
            ],
            ..aegis.recovery.clone()
        },
        ..aegis
    };
    assert_eq!(config, expected);
}

#[test]
fn every_preset_written_out_in_full_is_itself() {
    for preset in Preset::ALL {
        let config = Config::from(preset);
        let written = serde_json::to_string(&Settings::from(&config)).unwrap();
        let read: Settings = serde_json::from_str(&written).unwrap();
        assert_eq!(read.check().unwrap(), config);
    }
}
