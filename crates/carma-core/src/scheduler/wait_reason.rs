//! What holds a job back, apart from what single devices and hosts say.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Scheduler;
use super::cpu_jobs::could_ever_hold;
use crate::admission::Demand;
use crate::config::{OverQuota, QueueOrder};
use crate::fair_share::Account;
use crate::job::{Dependency, HostClaim, Job, JobSpec, State};
use crate::mapping;
use crate::obstacle::Wording;
use crate::obstacle::counted;
use crate::queue::Place;
use crate::units::{MiB, Seconds, Time, Watts};
use crate::{JobId, RequestedMode};

/// What holds a job back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum WaitReason {
    /// It does not wait: it runs, or it is over.
    NotWaiting,
    /// It is held until a user releases it.
    Held,
    /// Its estimate is not ready.
    Estimating,
    /// It waits for other jobs.
    Dependencies {
        /// Which, and how they must end.
        on: Vec<Dependency>,
    },
    /// It is not to begin before this.
    NotBefore {
        /// When.
        begin: Time,
    },
    /// As many jobs of its array run as may.
    ArrayLimit {
        /// How many that is.
        at_most: u32,
    },
    /// Its user may not have more at once.
    Quota {
        /// What would be too much.
        #[serde(flatten)]
        over: OverQuota,
    },
    /// No server with enough GPUs has a host with these cores and this memory, even without other jobs.
    TooLargeForHosts {
        /// What it claims.
        #[serde(flatten)]
        claim: HostClaim,
    },
    /// No server that could hold it has the power for it, even if all else ended.
    TooMuchPower {
        /// The least budget that would do.
        needed: Watts,
        /// The budget.
        budget: Watts,
    },
    /// No server could hold it even if all else ended.
    TooLarge {
        /// GPUs wanted.
        gpus: u32,
        /// The most memory a rank needs.
        memory: MiB,
        /// The memory of the largest device.
        largest: MiB,
        /// The most devices of a server.
        #[serde(default)]
        most: u32,
    },
    /// There is no server at all.
    NoServer,
    /// Servers could hold it if they did not end: it needs one that lasts longer.
    ServersEnd {
        /// How long it needs one; unset: they end soon, and take nothing new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<Seconds>,
    },
    /// No host takes another job without GPUs.
    NoHost,
    /// It is next, and there is no room yet.
    Room,
    /// Another job is next.
    Behind {
        /// The head of the queue.
        head: JobId,
        /// How many jobs are before it.
        ahead: usize,
        /// Why the head goes first, where it is not that it was there first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(alias = "because")]
        precedence: Option<Precedence>,
    },
}

/// Why one job goes before another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Precedence {
    /// It ran out of memory and is to be recovered.
    Recovery,
    /// It has the higher priority.
    Priority,
    /// Its group has recently used less of its share, in GPU-seconds over the share.
    Group {
        /// Past and predicted use of the head's group.
        theirs: f64,
        /// What this job's has.
        ours: f64,
    },
    /// Its user has recently used less, in GPU-seconds over the share.
    User {
        /// Past and predicted use of the head's user.
        theirs: f64,
        /// What this job's has.
        ours: f64,
    },
    /// It has had less GPU time, or has waited for longer.
    LessAttained,
    /// It should need less GPU time, or has waited for longer.
    Shorter,
    /// It is the longest, and would end last even if it began now.
    Longest,
}

impl Scheduler {
    pub(super) fn wait_reason(&self, job: &Job, demand: &Demand<'_>) -> WaitReason {
        let place = Place::of(job);
        if let Some(over) = self.over_quota(job, self.clock) {
            return WaitReason::Quota { over };
        }
        match &job.state {
            State::Held { .. } => WaitReason::Held,
            State::Estimating { .. } => WaitReason::Estimating,
            State::Starting(_) | State::Running(_) | State::Done { .. } => WaitReason::NotWaiting,
            _ if !job.unmet.is_empty() => WaitReason::Dependencies { on: job.unmet.clone() },
            _ if self.arrays.is_waiting(job) => {
                WaitReason::ArrayLimit { at_most: job.spec.array.and_then(|member| member.at_most).unwrap_or_default() }
            }
            _ if !self.queues.contains(&place) => WaitReason::NotBefore { begin: job.spec.begin.unwrap_or_default() },
            _ if self.fleet.servers().is_empty() => WaitReason::NoServer,
            _ if demand.width() == 0 => self.wait_reason_without_gpus(job, demand),
            _ if self.too_large_for_hosts(demand) => WaitReason::TooLargeForHosts { claim: demand.host },
            _ if self.queues.is_set_aside(&place) || !mapping::could_ever_fit(&self.fleet, demand) => self.why_too_large(job, demand),
            _ => match self.head() {
                Some(head) if head != job.id() => {
                    let ahead = self.queue_ids().take_while(|other| *other != job.id()).count();
                    WaitReason::Behind { head, ahead, precedence: self.precedence(head, job) }
                }
                _ => WaitReason::Room,
            },
        }
    }

    /// Why no server could ever run such a job, even if all else ended. Servers that end soon count. GPUs can change their mode, and lost GPUs can
    /// come back.
    pub fn never_runs(&self, spec: &JobSpec) -> Option<WaitReason> {
        if self.fleet.servers().is_empty() || self.fleet.devices().any(|device| device.lost) {
            return None;
        }
        let spec = JobSpec { mode: RequestedMode::default(), ..spec.clone() };
        let job = Job::accept(spec, Vec::new(), self.sequence + 1, self.clock);
        let demand = Demand { whenever: true, ..self.demand(&job, self.clock) };
        match demand.width() {
            0 => (!could_ever_hold(&self.fleet, &demand)).then_some(WaitReason::TooLargeForHosts { claim: demand.host }),
            _ if mapping::could_ever_fit(&self.fleet, &demand) => None,
            _ if self.too_large_for_hosts(&demand) => Some(WaitReason::TooLargeForHosts { claim: demand.host }),
            _ => Some(self.why_too_large(&job, &demand)),
        }
    }

    /// Why the head goes before a job.
    fn precedence(&self, head: JobId, job: &Job) -> Option<Precedence> {
        let head = self.jobs.get(&head)?;
        let seconds = |usage: u64| usage as f64 / 1000.0;
        let (ledger, theirs, ours) = (&self.queues.main.ledger, Account::of(head), Account::of(job));
        let recovering = |job: &Job| matches!(job.state, State::Recovering { .. });
        match self.config.queue.order {
            _ if self.critical == Some(head.id()) => Some(Precedence::Longest),
            _ if recovering(head) && !recovering(job) => Some(Precedence::Recovery),
            _ if head.spec.priority != job.spec.priority => Some(Precedence::Priority),
            _ if recovering(head) => None,
            _ if self.config.queue.fair_share && theirs.group != ours.group => {
                Some(Precedence::Group { theirs: seconds(ledger.of_group(theirs.group)), ours: seconds(ledger.of_group(ours.group)) })
            }
            _ if self.config.queue.fair_share && theirs != ours => {
                Some(Precedence::User { theirs: seconds(ledger.of_user(theirs)), ours: seconds(ledger.of_user(ours)) })
            }
            QueueOrder::Submission => None,
            QueueOrder::LeastAttained => Some(Precedence::LessAttained),
            QueueOrder::Shortest => Some(Precedence::Shorter),
        }
    }

    fn wait_reason_without_gpus(&self, job: &Job, demand: &Demand<'_>) -> WaitReason {
        match self.queues.host_head() {
            _ if !could_ever_hold(&self.fleet, demand) => {
                let ends = could_ever_hold(&self.fleet, &Demand { whenever: true, ..demand.clone() });
                if ends { WaitReason::ServersEnd { needed: demand.lasts } } else { WaitReason::TooLargeForHosts { claim: demand.host } }
            }
            Some(head) if head != job.id() && !demand.host.is_nothing() => {
                WaitReason::Behind { head, ahead: self.queues.ahead_for_host(&Place::of(job)), precedence: None }
            }
            _ => WaitReason::NoHost,
        }
    }

    /// Why no server could hold a job with GPUs.
    fn why_too_large(&self, job: &Job, demand: &Demand<'_>) -> WaitReason {
        if let Some((needed, budget)) = self.too_much_power(demand) {
            return WaitReason::TooMuchPower { needed, budget };
        }
        if mapping::could_ever_fit(&self.fleet, &Demand { whenever: true, ..demand.clone() }) {
            return WaitReason::ServersEnd { needed: demand.lasts };
        }
        WaitReason::TooLarge {
            gpus: job.spec.gpus,
            memory: demand.ranks.first().map(|need| need.alone).unwrap_or_default(),
            largest: self.fleet.largest(),
            most: self
                .fleet
                .servers()
                .iter()
                .map(|server| server.devices.iter().filter(|device| device.exists()).count())
                .max()
                .unwrap_or(0) as u32,
        }
    }

    /// Whether servers could hold the job but for what it claims of their hosts.
    fn too_large_for_hosts(&self, demand: &Demand<'_>) -> bool {
        let unclaiming = || Demand { host: HostClaim::default(), ..demand.clone() };
        !mapping::could_ever_fit(&self.fleet, demand) && mapping::could_ever_fit(&self.fleet, &unclaiming())
    }
}

impl WaitReason {
    /// Whether the job can never start on the present hardware.
    pub const fn is_for_ever(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooLargeForHosts { .. } | Self::TooMuchPower { .. })
    }

    /// As text in these words.
    pub fn text(&self, words: Wording<'_>) -> String {
        match self {
            Self::NotBefore { begin } => format!("starts no earlier than {}", (words.moment)(*begin)),
            Self::Dependencies { on } => {
                let jobs: Vec<String> = on.iter().map(|dependency| (words.job)(dependency.job)).collect();
                format!("waits for {}", jobs.join(", "))
            }
            Self::Behind { head, ahead, precedence } => {
                let reason = precedence.map_or_else(String::new, |precedence| format!(": {precedence}"));
                format!("is number {} in the queue; {} is next{reason}", ahead + 1, (words.job)(*head))
            }
            other => other.to_string(),
        }
    }
}

fn gpus_text(count: u32) -> String {
    format!("{count} GPU{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting => f.write_str("does not wait"),
            Self::Held => f.write_str("is held until it is released"),
            Self::Estimating => f.write_str("is being estimated"),
            Self::Dependencies { .. } | Self::NotBefore { .. } | Self::Behind { .. } => f.write_str(&self.text(Wording::PLAIN)),
            Self::ArrayLimit { at_most } => write!(f, "waits: its array may run {} at once", counted(u64::from(*at_most), "job", "s")),
            Self::Quota { over } => write!(f, "waits: its user has reached a quota: {over}"),
            Self::TooLargeForHosts { claim } => {
                write!(f, "can never start: no server with enough GPUs has a host with {claim}")
            }
            Self::TooMuchPower { needed, budget } => write!(
                f,
                "can never start: it alone would need {needed} on a server, and the power budget is {budget}; raise power.budget, or set power.cap"
            ),
            Self::TooLarge { gpus, most: 0, .. } => write!(f, "can never start: it needs {}, and no server has a GPU", gpus_text(*gpus)),
            Self::TooLarge { gpus, memory, largest, most } => {
                let each = if *memory > MiB::ZERO { format!(" with {memory} each") } else { String::new() };
                let (needs, most) = (gpus_text(*gpus), gpus_text(*most));
                write!(f, "can never start: it needs {needs}{each}; a server has at most {most}, and the largest GPU has {largest}")
            }
            Self::NoServer => f.write_str("waits for a server: there is none"),
            Self::ServersEnd { needed: None } => f.write_str("waits for a server: the suitable servers end soon"),
            Self::ServersEnd { needed: Some(needed) } => {
                write!(f, "waits for a server that lasts {needed}: the suitable servers end earlier")
            }
            Self::NoHost => f.write_str("waits for a host with room for a job without GPUs"),
            Self::Room => f.write_str("is next in the queue: no GPU has room"),
        }
    }
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = |seconds: &f64| format!("{:.1}", seconds / 3600.0);
        match self {
            Self::Recovery => f.write_str("it recovers from an out-of-memory error"),
            Self::Priority => f.write_str("its priority is higher"),
            Self::Group { theirs, ours } => {
                write!(f, "its group has used less recently: {} GPU hours; this job's group {}", hours(theirs), hours(ours))
            }
            Self::User { theirs, ours } => {
                write!(f, "its user has used less recently: {} GPU hours; this job's user {}", hours(theirs), hours(ours))
            }
            Self::LessAttained => f.write_str("it has used less GPU time, or has waited longer"),
            Self::Shorter => f.write_str("it is shorter, or has waited longer"),
            Self::Longest => f.write_str("it is the longest job and would end last"),
        }
    }
}
