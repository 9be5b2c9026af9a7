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
//! ```
//!
//! `{job}` is a number, `12_3` (index 3 of array 12), `last` or `@name`; the number of an array means all of its jobs. `{gpu}` is a device as `carma gpus` names it.

mod act;
mod gpu;
mod job;
mod problem;
mod status;

pub use act::{Act, Acted, JobChange, NotDone, Submit, Submitted};
pub use gpu::{GpuDetail, GpuTenant, SampleQuery};
pub use job::{
    ArrayPlace, AttemptDetail, EnergyKind, EnergyQuery, EnergyReport, EstimateDetail, Forecast, HistoryQuery, JobDetail, LogQuery,
    LogStream, Queue, QueueQuery, QueueRow, WaitQuery, Why,
};
pub use problem::{Problem, ProblemKind};
pub use status::{ConfigurationDetail, Counts, EventQuery, Reloaded, Shutdown, Status, Told, Update};
