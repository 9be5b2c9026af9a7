//! Random fleets, rules and steps.

use carma_core::*;
use proptest::prelude::*;
use proptest::sample::Index;

use super::servers::{ServerStep, server_steps};

/// The initial state.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) settings: Settings,
    /// Servers; for each, its GPUs' memory in GiB and mode.
    pub(super) servers: Vec<Vec<(u64, Mode)>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Mode {
    Streams,
    Mps,
    /// Cut into two instances.
    Mig,
}

/// Something that happens. Jobs and devices are picked from those there are at the time.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Submit(Box<JobSpec>, Option<(Index, Condition)>),
    Seen(Index, u64),
    Exit(Index, Verdict),
    Progress(Index, f64),
    Needed(Index, u64),
    /// The driver sets no limits for the job.
    NotLimited(Index),
    Cancel(Index),
    Hold(Index),
    Release(Index),
    Requeue(Index),
    Change(Index, i32, LimitChange),
    MoveBegin(Index, u64),
    Estimate(Index, u64),
    /// The job keeps what it has done so far.
    Checkpoint(Index),
    /// Hanging, slow, or neither.
    Stall(Index, Option<bool>),
    Window(Index, u64, f64),
    Sample(Index, u64, Option<f64>),
    /// A power limit is set, or was taken off.
    PowerLimit(Index, Option<f64>),
    /// What an attempt does on its GPUs.
    Activity(Index, f64),
    Outsider(Index, Option<u64>),
    Lose(Index),
    Back(Index),
    Drain(Index, bool),
    Failing(Index),
    MpsDied(Index),
    /// A GPU is partitioned into one instance more, or an instance is taken away.
    Cut(Index, u16),
    Uncut(Index),
    Mode(Index, bool),
    /// A requested switch is done, or refused.
    Switched(Index, bool),
    Forget(Index),
    LaunchFailed(Index),
    HostShort(Index, bool),
    HostMemory(Index, u64),
    Server(ServerStep),
    Wait(u64),
    Settings(Box<Settings>),
    /// Events about unknown jobs and devices.
    Nonsense,
}

/// The same rules, with or without fair share.
fn with_fair_share(settings: Settings, fair_share: bool) -> Settings {
    Settings { queue: settings.queue.map(|queue| QueueSettings { fair_share: Some(fair_share), ..queue }), ..settings }
}

impl Setup {
    /// The same where there is one user, with or without fair share.
    pub(super) fn of_one_user(self, fair_share: bool) -> Self {
        Self { settings: with_fair_share(self.settings, fair_share), ..self }
    }
}

impl Step {
    /// The same where there is one user, with or without fair share.
    pub(super) fn of_one_user(self, fair_share: bool) -> Self {
        match self {
            Self::Submit(spec, after) => Self::Submit(Box::new(JobSpec { user: UserId(1), group: GroupId(0), ..*spec }), after),
            Self::Settings(settings) => Self::Settings(Box::new(with_fair_share(*settings, fair_share))),
            other => other,
        }
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    // Only our own preset has aims.
    let aimed = prop::sample::select(Aim::ALL.to_vec()).prop_map(|aim| (Preset::Carma, Some(aim)));
    let preset = prop_oneof![prop::sample::select(Preset::ALL.to_vec()).prop_map(|preset| (preset, None)), aimed];
    let policy = prop::sample::select(vec![
        "magm",
        "magm",
        "or-magm",
        "est-magm",
        "lug",
        "ff",
        "or-bf",
        "exclusive",
        "rr",
        "or-rr",
        "horus",
        "lucid",
        "carma",
        "carma",
    ]);
    let limit = || prop::option::weighted(0.3, (1_u32..5).prop_map(f64::from));
    let memory = || prop::option::weighted(0.3, (0_u32..120_000).prop_map(f64::from));
    let own = prop::option::weighted(0.3, (limit(), limit(), memory()))
        .prop_map(|own| own.map(|(jobs, gpus, memory)| vec![UserQuotaSettings { uid: 1, jobs, gpus, memory }]));
    let quotas = (limit(), limit(), memory(), own).prop_map(|(jobs, gpus, memory, users)| QuotaSettings { jobs, gpus, memory, users });
    let jobs_per_gpu = prop::sample::select(vec![0.0, 0.0, 1.0, 3.0]);
    let allowed = prop::sample::subsequence(vec![SharingMode::Streams, SharingMode::Mps, SharingMode::Mig], 0..=3);
    // Often nothing, and gains of nothing, so that there is much switching where there is any.
    let modes = prop::option::of((allowed, any::<bool>(), prop::sample::select(vec![0.0, 0.05]))).prop_map(|modes| {
        modes.map(|(allowed, thread_shares, gain)| ModeSettings {
            allowed: Some(allowed),
            thread_shares: Some(thread_shares),
            gain: Some(gain),
            every: Some(60.0),
        })
    });
    let correction = prop::sample::select(vec![(0.0, 0.0), (1.2, 200.0)]);
    let time_slice = prop::sample::select(vec![0.0, 20.0, 90.0]);
    let confirmed = prop::option::of(prop::sample::select(vec![0.0, 5.0, 30.0]));
    // Often short against the runs, so that memory is given back.
    let trim_after = prop::option::of(prop::sample::select(vec![0.0, 20.0, 100.0]));
    let enforcement = prop::option::of(prop::sample::select(vec![Enforcement::Off, Enforcement::Soft, Enforcement::Hard]));
    let memory = (trim_after, enforcement);
    let queueing = (jobs_per_gpu, queues(), prop::option::of(quotas), (time_slice, correction, confirmed, memory));
    (preset, policy, any::<(bool, bool, bool)>(), queueing, power(), idle_jobs(), modes).prop_map(
        |(
            (preset, aim),
            policy,
            (reservations, idle_first, avoid),
            (jobs_per_gpu, queue, quotas, (time_slice, (slowdown, horizon), confirmed, (trim_after, enforcement))),
            power,
            idle_jobs,
            modes,
        )| Settings {
            preset: Some(preset),
            aim,
            policy: Some(policy.to_owned()),
            admission: Some(AdmissionSettings {
                reservations: Some(reservations),
                idle_first: Some(idle_first),
                jobs_per_gpu: Some(jobs_per_gpu),
                trim_after,
                foreign: Some(if avoid { Foreign::Avoid } else { Foreign::Share }),
                ..AdmissionSettings::default()
            }),
            gate: Some(GateSettings { confirmed, ..GateSettings::default() }),
            queue: Some(queue),
            quotas,
            correction: Some(CorrectionSettings { slowdown: Some(slowdown), memory_horizon: Some(horizon) }),
            enforce: Some(EnforceSettings { memory: enforcement, stop_borrowers: None }),
            time_slices: Some(TimeSliceSettings { length: Some(time_slice) }),
            power,
            idle_jobs,
            modes,
            ..Settings::default()
        },
    )
}

/// Every order, with and without turns between users.
fn queues() -> impl Strategy<Value = QueueSettings> {
    let backfill = prop::sample::select(vec![0.0, 2.0, 100.0]);
    let order = prop::sample::select(vec![QueueOrder::Submission, QueueOrder::LeastAttained, QueueOrder::Shortest]);
    let ageing = prop::sample::select(vec![0.01, 1.0, 50.0]);
    let half_life = prop::sample::select(vec![60.0, 86_400.0]);
    let share = |uid, gid, share| ShareSettings { uid, gid, share };
    let shares = prop::sample::select(vec![Vec::new(), vec![share(Some(1), None, 3.0), share(None, Some(1), 0.5)]]);
    // Often short against the jobs, so that GPUs are kept by time limits and by predictions.
    let reserve_after = prop::sample::select(vec![0.0, 50.0, 100_000.0]);
    let critical = prop::sample::select(vec![0.0, 1.0]);
    let kept = (reserve_after, prop::sample::select(vec![0.0, 0.07, 1.0]), prop::sample::select(vec![0.0, 0.6]));
    let who_is_next = (order, ageing, any::<bool>(), critical);
    (backfill, kept, who_is_next, half_life, shares).prop_map(
        |(backfill, (reserve_after, drain, stretch), (order, ageing, fair_share, critical), half_life, shares)| QueueSettings {
            backfill: Some(backfill),
            reserve_after: Some(reserve_after),
            drain: Some(drain),
            stretch: Some(stretch),
            critical: Some(critical),
            order: Some(order),
            ageing: Some(ageing),
            fair_share: Some(fair_share),
            half_life: Some(half_life),
            fair_share_reserve: Some(half_life - 60.0),
            shares: Some(shares),
            ..QueueSettings::default()
        },
    )
}

fn power() -> impl Strategy<Value = Option<PowerSettings>> {
    let budget = prop::option::of((100_u32..1500).prop_map(f64::from));
    let cap = prop::option::weighted(0.2, (100_u32..400).prop_map(f64::from));
    let prefer = prop::option::of(prop_oneof![Just(PowerPreference::Spread), Just(PowerPreference::Pack)]);
    prop::option::of((budget, cap, prefer).prop_map(|(budget, cap, prefer)| PowerSettings { budget, cap, prefer }))
}

fn idle_jobs() -> impl Strategy<Value = Option<IdleJobSettings>> {
    let after = || prop::option::of((0_u32..60).prop_map(f64::from));
    let settings = (after(), after()).prop_map(|(flag_after, lend_after)| IdleJobSettings { below: Some(0.2), flag_after, lend_after });
    prop::option::of(settings)
}

pub(super) fn setups() -> impl Strategy<Value = Setup> {
    let mode = prop_oneof![4 => Just(Mode::Streams), 1 => Just(Mode::Mps), 1 => Just(Mode::Mig)];
    let memory = prop::sample::select(vec![11, 40, 40, 80]);
    let servers = prop::collection::vec(prop::collection::vec((memory, mode), 1..5), 0..4);
    (settings(), servers).prop_map(|(settings, servers)| Setup { settings, servers })
}

fn job() -> impl Strategy<Value = JobSpec> {
    let memory = prop_oneof![
        2 => (100_u64..50_000).prop_map(|memory| MemoryNeed::known(MiB(memory))),
        2 => (100_u64..50_000).prop_map(|memory| MemoryNeed::estimated(MiB(memory / 2), MiB(memory))),
        1 => Just(MemoryNeed::default()),
        1 => (100_u64..30_000).prop_map(|memory| MemoryNeed { known: Some(PerRank::Each(vec![MiB(memory), MiB(memory / 3)])), estimated: None }),
    ];
    let gpus = prop_oneof![1 => Just(0_u32), 6 => Just(1_u32), 3 => Just(2_u32), 1 => 3_u32..6];
    let limit = prop::option::of((1_u64..400).prop_map(Seconds::from_secs));
    let mode = prop_oneof![8 => Just(RequestedMode::Auto), 1 => Just(RequestedMode::Streams), 1 => Just(RequestedMode::Mps), 1 => Just(RequestedMode::Mig)];
    let array = prop::option::weighted(
        0.2,
        (0_u64..2, 0_u32..9).prop_map(|(array, index)| ArrayMember { array: ArrayId(array), index, at_most: Some(2) }),
    );
    let retries =
        (prop::option::weighted(0.3, 0_u32..3), 0_u32..2).prop_map(|(out_of_memory, failure)| RetryBudget { out_of_memory, failure });
    let begin = prop::option::weighted(0.1, (0_u64..300).prop_map(Time::from_secs));
    let user = (0_u32..3).prop_map(UserId);
    let expected = prop::option::weighted(0.7, (1_u64..5_000).prop_map(Seconds::from_secs));
    let kept_back = (prop::bool::weighted(0.1), prop::bool::weighted(0.15));
    let on_hang = prop_oneof![Just(OnHang::Report), Just(OnHang::Restart), Just(OnHang::Fail)];
    let flags = (kept_back, prop::bool::weighted(0.2), prop::bool::weighted(0.3), any::<bool>(), on_hang);
    let host = (prop::option::weighted(0.3, 1_u32..12), prop::option::weighted(0.3, (1_u64..70_000).prop_map(MiB)));
    (gpus, memory, limit, mode, array, retries, begin, (user, -1_i32..2, host, expected), flags).prop_map(
        |(
            gpus,
            memory,
            time_limit,
            mode,
            array,
            retries,
            begin,
            (user, priority, (cpus, host_memory), expected_duration),
            ((hold, awaits_estimate), exclusive, may_span_servers, may_checkpoint, on_hang),
        )| {
            let per_rank = matches!(memory.known, Some(PerRank::Each(_)));
            JobSpec {
                gpus: if per_rank { 2 } else { gpus },
                memory,
                cpus,
                host_memory,
                time_limit,
                mode,
                array,
                retries,
                begin,
                user,
                group: GroupId(user.0 / 2),
                expected_duration,
                priority: Priority(priority),
                hold,
                awaits_estimate,
                exclusive,
                may_span_servers,
                may_checkpoint,
                on_hang,
                ..JobSpec::new(JobId(0))
            }
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => Just(Verdict::Succeeded),
        2 => Just(Verdict::OutOfMemory),
        1 => Just(Verdict::Failed { code: 1 }),
        1 => Just(Verdict::HostOutOfMemory),
        1 => Just(Verdict::GpuLost),
        1 => Just(Verdict::MpsServerDied),
        1 => Just(Verdict::SupervisorLost),
        1 => Just(Verdict::ServerLost),
        1 => Just(Verdict::Hung),
    ]
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    let pick = any::<Index>;
    let condition = prop_oneof![Just(Condition::Ok), Just(Condition::Any)];
    let limit =
        prop_oneof![Just(LimitChange::Keep), Just(LimitChange::Remove), (1_u64..300).prop_map(|s| LimitChange::Set(Seconds::from_secs(s)))];
    prop_oneof![
        20 => (job(), prop::option::weighted(0.15, (pick(), condition))).prop_map(|(spec, after)| Step::Submit(Box::new(spec), after)),
        14 => (pick(), 0_u64..45_000).prop_map(|(job, memory)| Step::Seen(job, memory)),
        14 => (pick(), verdict()).prop_map(|(job, verdict)| Step::Exit(job, verdict)),
        2 => (pick(), 100_u64..90_000).prop_map(|(job, memory)| Step::Needed(job, memory)),
        1 => pick().prop_map(Step::NotLimited),
        3 => (pick(), 0.0..1.0).prop_map(|(job, done)| Step::Progress(job, done)),
        2 => pick().prop_map(Step::Cancel),
        2 => pick().prop_map(Step::Hold),
        3 => pick().prop_map(Step::Release),
        2 => pick().prop_map(Step::Requeue),
        2 => (pick(), -1_i32..2, limit).prop_map(|(job, priority, limit)| Step::Change(job, priority, limit)),
        1 => (pick(), 0_u64..300).prop_map(|(job, begin)| Step::MoveBegin(job, begin)),
        4 => (pick(), 100_u64..50_000).prop_map(|(job, memory)| Step::Estimate(job, memory)),
        2 => pick().prop_map(Step::Checkpoint),
        2 => (pick(), prop::option::weighted(0.8, any::<bool>())).prop_map(|(job, hangs)| Step::Stall(job, hangs)),
        14 => (pick(), 0_u64..40_000, 0.0..1.0).prop_map(|(device, used, smact)| Step::Window(device, used, smact)),
        6 => (pick(), 0_u64..40_000, prop::option::of(0.0..1.0)).prop_map(|(device, used, smact)| Step::Sample(device, used, smact)),
        1 => (pick(), prop::option::of(100.0..400.0)).prop_map(|(device, watts)| Step::PowerLimit(device, watts)),
        3 => (pick(), 0.0..0.5).prop_map(|(job, activity)| Step::Activity(job, activity)),
        3 => (pick(), prop::option::of(100_u64..20_000)).prop_map(|(device, memory)| Step::Outsider(device, memory)),
        2 => pick().prop_map(Step::Lose),
        3 => pick().prop_map(Step::Back),
        2 => (pick(), any::<bool>()).prop_map(|(device, on)| Step::Drain(device, on)),
        1 => pick().prop_map(Step::Failing),
        1 => pick().prop_map(Step::MpsDied),
        1 => (pick(), 0_u16..3).prop_map(|(device, instance)| Step::Cut(device, instance)),
        1 => pick().prop_map(Step::Uncut),
        1 => (pick(), any::<bool>()).prop_map(|(device, mps)| Step::Mode(device, mps)),
        6 => (pick(), prop::bool::weighted(0.8)).prop_map(|(switch, done)| Step::Switched(switch, done)),
        1 => pick().prop_map(Step::Forget),
        1 => pick().prop_map(Step::LaunchFailed),
        2 => (pick(), any::<bool>()).prop_map(|(server, short)| Step::HostShort(server, short)),
        4 => (pick(), 0_u64..80_000).prop_map(|(server, available)| Step::HostMemory(server, available)),
        8 => server_steps().prop_map(Step::Server),
        14 => (1_u64..60).prop_map(Step::Wait),
        1 => settings().prop_map(|settings| Step::Settings(Box::new(settings))),
        2 => Just(Step::Nonsense),
    ]
}
