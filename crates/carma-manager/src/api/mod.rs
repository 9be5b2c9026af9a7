//! What the manager and its clients say to each other: HTTP and JSON, over a Unix socket and, where it is wanted, TCP.
//!
//! ```text
//!  POST /v1/jobs                    Submit -> Submitted           GET  /v1/queue      QueueQuery -> Queue
//!  GET  /v1/jobs/{job}              JobDetail                     GET  /v1/history    HistoryQuery -> [JobSummary]
//!  GET  /v1/jobs/{job}/why          Why                           GET  /v1/energy     EnergyQuery -> EnergyReport
//!  GET  /v1/jobs/{job}/wait         WaitQuery -> JobDetail        GET  /v1/export     HistoryQuery -> JobDetail, one a line
//!  GET  /v1/jobs/{job}/logs         LogQuery -> bytes             GET  /v1/gpus       [GpuDetail]
//!  GET  /v1/jobs/{job}/terminal     (upgrade)                     POST /v1/gpus/{gpu}/drain, /resume
//!  POST /v1/jobs/{job}/cancel, hold, release, requeue  Acted      GET  /v1/gpus/{gpu}/samples
//!  PATCH /v1/jobs/{job}             JobChange -> Acted            GET  /v1/events     (server-sent events)
//!  POST /v1/forecast                Submit -> [Forecast]          GET  /v1/status, /v1/configuration, /v1/openapi.json
//!  POST /v1/shutdown                Shutdown                      POST /v1/configuration/reload
//!  GET  /v1/me                      Me                            GET  /v1/recent     RecentQuery -> [RecentLooks]
//!  GET, PUT /v1/notifications       [Notification]                GET  /v1/gpus/{gpu}/timeline  SampleQuery -> GpuTimeline
//!  GET  /v1/what-if                 WhatIfQuery -> WhatIf         GET  /metrics       (Prometheus)
//!  POST /v1/notifications/test      [Tried]                       GET  /v1/shares     [ShareRow]
//! ```
//!
//! `{job}` is a number, `12_3` (index 3 of array 12), `last` or `@name`; the number of an array means all of its jobs. `{gpu}` is a device as `carma gpus` names it.

mod act;
mod gpu;
mod job;
mod notification;
mod problem;
mod queue;
mod seen;
mod share;
mod status;
mod what_if;

pub use crate::event::{ByUser, JobEstimate, JobEvent, MemoryPart};
pub use crate::request::JobChange;
pub use crate::store::MemoryStep;
pub use act::{Act, Acted, NotDone, Submit, Submitted};
pub use gpu::{GpuDetail, GpuTenant, SampleQuery};
pub use job::{
    ArrayPlace, AttemptDetail, EnergyKind, EnergyQuery, EnergyReport, EstimateDetail, Forecast, HistoryOrder, HistoryQuery, JobDetail,
    LogQuery, LogStream, QueueRow, WaitQuery, Why,
};
pub use notification::{Channel, Happened, Notification, Occasion, Tried};
pub use problem::{Problem, ProblemKind};
pub use queue::{MOST_ROWS, NotACursor, Queue, QueueCursor, QueuePart, QueueQuery};
pub use seen::{GpuStay, GpuTimeline, RecentLooks, RecentQuery, RecentTenant};
pub use share::ShareRow;
pub use status::{ConfigurationDetail, Counts, EventQuery, Me, Reloaded, Shutdown, Status, Told, Update};
pub use what_if::{Fate, WhatIf, WhatIfQuery};
