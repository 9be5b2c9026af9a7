//! Whether an attempt shows signs of life.
//!
//! - It must have worked before: nothing is said of a start, of loading data, or of a rendezvous.
//! - It must be quiet for the set time, and for twice as long as it ever was before it went on: long evaluations and checkpoints return.
//! - The time counts only while it is known what its GPUs do. After a gap in the samples, it begins again.
//! - Without GPUs, only an attempt that reports progress is judged: many programs compute for hours without a word.

use std::time::SystemTime;

use carma_core::{Fraction, Seconds, Time};

use super::signs::{GpuSign, OutputMark, Signs};

/// An earlier quiet time counts this many times.
const QUIET_FACTOR: f64 = 2.0;
/// The time between two samples of the GPUs counts if it is at most this part of the set time.
const MAX_GAP: f64 = 0.1;
/// Activity of processes is asked for after this part of the set time without output and progress.
const SUSPECT_AFTER: f64 = 0.25;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HangState {
    /// It showed a sign of life.
    Seen,
    /// Nothing says that it lives, and it is not quiet for long enough to say more.
    Unknown,
    /// It hangs since then.
    Hanging { since: Time },
}

/// The output and the reported progress of the attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OutputState {
    output: OutputMark,
    progress: Option<Fraction>,
    checkpoint: Option<SystemTime>,
}

/// Its GPUs are known to do nothing for it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct IdleGpus {
    since: Time,
    seen: Time,
}

/// The signs of life so far.
#[derive(Debug, Clone, Default)]
pub(super) struct HangWatch {
    output: Option<OutputState>,
    /// When its words last changed, or were first seen.
    spoke: Time,
    idle_gpus: Option<IdleGpus>,
    /// The last sample did not show what its GPUs do.
    gpu_unknown: bool,
    has_gpus: bool,
    worked: bool,
    /// The longest quiet time after which it went on.
    longest: Seconds,
}

impl HangWatch {
    pub(super) fn new(worked: bool) -> Self {
        Self { worked, ..Self::default() }
    }

    pub(super) fn look(&mut self, signs: Signs, now: Time, after: Seconds) -> HangState {
        let Signs { gpu, output, progress, checkpoint } = signs;
        let output = OutputState { output, progress, checkpoint };
        let before = self.output.replace(output);
        let spoke = before.is_some_and(|before| before != output);
        self.has_gpus = gpu != GpuSign::None;
        self.gpu_unknown = gpu == GpuSign::Unknown;
        self.worked |= match gpu {
            GpuSign::Works => true,
            GpuSign::None => before.is_some_and(|before| before.progress.is_some() && before.progress != progress),
            GpuSign::Idle | GpuSign::Unknown => false,
        };
        if spoke || gpu == GpuSign::Works {
            self.longest = self.longest.max(self.quiet_since().map_or(Seconds::ZERO, |since| now - since));
        }
        if spoke || before.is_none() {
            self.spoke = now;
        }
        self.idle_gpus = self.idle_gpus(gpu, now, after);
        match self.quiet_since() {
            _ if spoke || gpu == GpuSign::Works => HangState::Seen,
            Some(since) if self.worked && now - since >= after.max(self.longest.times(QUIET_FACTOR)) => HangState::Hanging { since },
            _ => HangState::Unknown,
        }
    }

    fn idle_gpus(&self, gpu: GpuSign, now: Time, after: Seconds) -> Option<IdleGpus> {
        let goes_on = self.idle_gpus.filter(|idle_gpus| now - idle_gpus.seen <= after.times(MAX_GAP));
        match gpu {
            GpuSign::Idle => Some(IdleGpus { seen: now, ..goes_on.unwrap_or(IdleGpus { since: now, seen: now }) }),
            GpuSign::Unknown => goes_on,
            GpuSign::Works | GpuSign::None => None,
        }
    }

    /// Since when all signs are missing.
    fn quiet_since(&self) -> Option<Time> {
        if self.has_gpus { self.idle_gpus.map(|idle_gpus| idle_gpus.since.max(self.spoke)) } else { Some(self.spoke) }
    }

    /// Whether it has said nothing for a while, and it is not known what its GPUs do.
    pub(super) fn needs_activity(&self, now: Time, after: Seconds) -> bool {
        // Once requested, it is read until the attempt prints or works.
        let unclear = self.gpu_unknown || self.idle_gpus.is_some();
        self.worked && unclear && now - self.spoke >= after.times(SUSPECT_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AFTER: Seconds = Seconds::from_secs(600);

    /// What a sample contains.
    #[derive(Debug, Clone, Copy)]
    struct Step {
        pause: u64,
        gpu: GpuSign,
        progress: bool,
        output: bool,
    }

    /// A watch, and what it was shown.
    #[derive(Default)]
    struct Lab {
        watch: HangWatch,
        now: Time,
        done: f64,
        written: u64,
    }

    impl Lab {
        fn step(&mut self, step: Step) -> HangState {
            self.now = self.now + Seconds::from_secs(step.pause);
            self.done += if step.progress { 1e-4 } else { 0.0 };
            self.written += u64::from(step.output);
            let signs = Signs {
                gpu: step.gpu,
                progress: (self.done > 0.0).then(|| Fraction::clamped(self.done)),
                output: [Some((self.written, SystemTime::UNIX_EPOCH)), None],
                checkpoint: None,
            };
            self.watch.look(signs, self.now, AFTER)
        }

        /// The same sign each ten seconds; the last answer.
        fn quiet(&mut self, gpu: GpuSign, seconds: u64) -> HangState {
            (0..seconds / 10).map(|_| self.step(Step { pause: 10, gpu, progress: false, output: false })).last().unwrap()
        }

        fn alive(&mut self, gpu: GpuSign) -> HangState {
            self.step(Step { pause: 1, gpu, progress: true, output: true })
        }
    }

    fn hangs(life: HangState) -> bool {
        matches!(life, HangState::Hanging { .. })
    }

    #[test]
    fn an_attempt_that_worked_and_is_quiet_for_the_set_time_hangs() {
        let mut lab = Lab::default();
        assert_eq!(lab.alive(GpuSign::Works), HangState::Seen);
        assert_eq!(lab.quiet(GpuSign::Idle, 600), HangState::Unknown);
        // The first quiet sample was at 11 s.
        assert_eq!(lab.quiet(GpuSign::Idle, 10), HangState::Hanging { since: Time::from_secs(11) });
        assert_eq!(lab.step(Step { pause: 1, gpu: GpuSign::Idle, progress: false, output: true }), HangState::Seen, "a line of output");
    }

    #[test]
    fn a_start_is_not_judged_however_long_it_takes() {
        let mut lab = Lab::default();
        assert!(!hangs(lab.quiet(GpuSign::Idle, 86_400)));
        lab.step(Step { pause: 1, gpu: GpuSign::Idle, progress: false, output: true });
        assert!(!hangs(lab.quiet(GpuSign::Idle, 86_400)), "a line of output is no work");
    }

    #[test]
    fn unknown_gpus_prove_nothing() {
        let mut lab = Lab::default();
        lab.alive(GpuSign::Works);
        assert!(!hangs(lab.quiet(GpuSign::Unknown, 86_400)));
        assert!(!hangs(lab.quiet(GpuSign::Idle, 590)), "the time begins with the first look that tells");
        assert!(hangs(lab.quiet(GpuSign::Idle, 20)));
    }

    #[test]
    fn a_gap_in_the_samples_begins_the_time_again() {
        let mut lab = Lab::default();
        lab.alive(GpuSign::Works);
        lab.quiet(GpuSign::Idle, 500);
        let late = Step { pause: 61, gpu: GpuSign::Idle, progress: false, output: false };
        assert!(!hangs(lab.step(late)));
        assert!(!hangs(lab.quiet(GpuSign::Idle, 590)));
        assert!(hangs(lab.quiet(GpuSign::Idle, 10)));
    }

    #[test]
    fn a_quiet_time_that_passed_before_may_come_again() {
        let mut lab = Lab::default();
        lab.alive(GpuSign::Works);
        assert!(hangs(lab.quiet(GpuSign::Idle, 1_500)));
        lab.alive(GpuSign::Works);
        assert!(!hangs(lab.quiet(GpuSign::Idle, 2_900)));
        assert!(hangs(lab.quiet(GpuSign::Idle, 200)));
    }

    #[test]
    fn without_gpus_only_progress_that_stops_counts() {
        let mut lab = Lab::default();
        lab.step(Step { pause: 1, gpu: GpuSign::None, progress: false, output: true });
        assert!(!hangs(lab.quiet(GpuSign::None, 86_400)), "it may compute without a word");
        lab.alive(GpuSign::None);
        lab.alive(GpuSign::None);
        // It was quiet for a day before.
        assert!(!hangs(lab.quiet(GpuSign::None, 86_400)));
        let mut lab = Lab::default();
        lab.alive(GpuSign::None);
        lab.alive(GpuSign::None);
        assert!(hangs(lab.quiet(GpuSign::None, 610)));
    }

    #[test]
    fn process_activity_is_read_only_when_needed() {
        let mut lab = Lab::default();
        lab.alive(GpuSign::Works);
        lab.quiet(GpuSign::Unknown, 140);
        assert!(!lab.watch.needs_activity(lab.now, AFTER));
        lab.quiet(GpuSign::Unknown, 10);
        assert!(lab.watch.needs_activity(lab.now, AFTER));
        lab.alive(GpuSign::Works);
        assert!(!lab.watch.needs_activity(lab.now, AFTER));
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let gpu = prop_oneof![6 => Just(GpuSign::Idle), 1 => Just(GpuSign::Works), 2 => Just(GpuSign::Unknown)];
        let output = || prop::bool::weighted(0.02);
        let step = (1_u64..50, gpu, output(), output()).prop_map(|(pause, gpu, progress, output)| Step { pause, gpu, progress, output });
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// A report means: it worked before, and in all of the set time there was no sign of life and no gap longer than a tenth of it.
        #[test]
        fn only_a_quiet_attempt_hangs(steps in steps()) {
            let mut lab = Lab::default();
            let (mut worked, mut sign, mut told) = (false, Time::ZERO, Time::ZERO);
            for (place, step) in steps.into_iter().enumerate() {
                let now = lab.now + Seconds::from_secs(step.pause);
                let lives = place == 0 || step.gpu == GpuSign::Works || step.progress || step.output;
                let tells = step.gpu == GpuSign::Idle;
                if lives || tells && now - told > AFTER.times(MAX_GAP) {
                    sign = now;
                }
                if tells {
                    told = now;
                }
                worked |= step.gpu == GpuSign::Works;
                let life = lab.step(step);
                if hangs(life) {
                    prop_assert!(worked && now - sign >= AFTER, "{life:?} at {now:?}, the last sign was at {sign:?}");
                }
            }
        }

        /// However it began: if it worked once and then nothing moves, that is found.
        #[test]
        fn hanging_attempts_are_found(steps in steps()) {
            let mut lab = Lab::default();
            lab.alive(GpuSign::Works);
            for step in steps {
                lab.step(step);
            }
            let patience = AFTER.max(lab.watch.longest.times(QUIET_FACTOR)).get() as u64;
            prop_assert!(hangs(lab.quiet(GpuSign::Idle, patience + 20)));
        }
    }
}
