//! The types of the API: HTTP and JSON, over a Unix socket and, if configured, TCP.
//!
//! ```text
//!  POST /v1/jobs                    Submission -> Submitted       GET  /v1/queue      QueueQuery -> Queue
//!  GET  /v1/jobs/{job}              JobDetail                     GET  /v1/history    HistoryQuery -> [JobSummary]
//!  GET  /v1/jobs/{job}/why          Why                           GET  /v1/energy     EnergyQuery -> EnergyReport
//!  GET  /v1/jobs/{job}/wait         WaitQuery -> JobDetail        GET  /v1/export     HistoryQuery -> JobDetail, one a line
//!  GET  /v1/jobs/{job}/logs         LogQuery -> bytes             GET  /v1/gpus       [GpuDetail]
//!  GET  /v1/jobs/{job}/terminal     (upgrade)                     POST /v1/gpus/{gpu}/drain, /resume
//!  POST /v1/jobs/{job}/cancel, hold, release, requeue -> ActionResult   GET  /v1/gpus/{gpu}/samples
//!  POST /v1/jobs/{job}/resubmit     Resubmission -> Submitted
//!  PATCH /v1/jobs/{job}             JobChange -> ActionResult     GET  /v1/events     (server-sent events)
//!  POST /v1/forecast                Submission -> [Forecast]      GET  /v1/status, /v1/configuration, /v1/openapi.json
//!  POST /v1/shutdown                Shutdown                      POST /v1/configuration/reload
//!  GET  /v1/me                      Me                            GET  /v1/recent     RecentQuery -> [RecentSamples]
//!  GET, PUT /v1/notifications       [Notification]                GET  /v1/gpus/{gpu}/timeline  SampleQuery -> GpuTimeline
//!  GET  /v1/what-if                 WhatIfQuery -> WhatIf         GET  /metrics       (Prometheus)
//!  POST /v1/notifications/test      [ChannelTest]                 GET  /v1/shares     [ShareRow]
//!  GET  /v1/policies                PolicyList                    GET  /v1/servers    [ServerDetail]
//!  GET  /v1/users/{user}            UsageQuery -> UserUsage       GET  /v1/jobs/{job}/utilisation  [AttemptUtilisation]
//!  GET, POST /v1/pools              [PoolDetail], NewPool         POST /v1/pools/{pool}, /v1/pools/{pool}/test
//!  GET  /v1/arrays                  ArrayQuery -> [ArraySummary]  GET  /v1/users      UserQuery -> [UserSummary]
//! ```
//!
//! `{job}` is a number, `12_3` (index 3 of array 12), `last` or `@name`; the number of an array means all of its jobs. `{gpu}` is a device as `carma gpus` names it.

mod action;
mod cluster;
mod counts;
mod energy;
mod gpu;
mod history;
mod job;
mod policies;
mod predicted;
mod problem;
mod queue;
mod share;
mod status;
mod timeline;
mod usage;
mod what_if;
mod why;

pub use crate::ending::{Ending, EndingClass, OutcomeFilter, explained};
pub use crate::event::{ByUser, CancelCause, JobEstimate, JobEvent, MemoryPart, uncorrected};
pub use crate::last_errors::LoggedError;
pub use crate::notification::{Channel, ChannelTest, Notification, NotifiedEvent, Occasion};
pub use crate::request::{ArrayPlace, JobChange, JobRequest, Parameter, Submission};
pub use crate::rows::{ArraySummary, EnergyKind, EnergyOf, EnergySum, GpuStay, JobCounts, JobSummary, UserSummary};
pub use crate::samples::{AttemptUtilisation, MemoryStep};
pub use action::*;
pub use cluster::{NewPool, PoolChange, PoolDetail, PoolTest, ServerDetail};
pub use counts::*;
pub use energy::*;
pub use gpu::*;
pub use history::*;
pub use job::*;
pub use policies::*;
pub use predicted::{JobPrediction, PredictedTime};
pub use problem::*;
pub use queue::*;
pub use share::*;
pub use status::*;
pub use timeline::*;
pub use usage::*;
pub use what_if::*;
pub use why::*;
