//! All calls of the API, with typed answers.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use carma_core::{JobId, UserId};
use hyper::Method;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::to_vec;

use super::address::{Address, HOST_VARIABLE, Token};
use super::connection::{Call, Connection};
use super::error::ClientError;
use super::events::Events;
use super::query::{escaped, with_query};
use super::streams::{Export, Log};
use crate::api::{
    ActionResult, AttemptUtilisation, ChannelTest, ConfigurationDetail, DrainResult, EnergyQuery, EnergyReport, Forecast, GpuDetail,
    GpuTimeline, HistoryQuery, JobAction, JobDetail, JobSummary, LogQuery, MAX_ROWS, Me, NewPool, Notification, PoolChange, PoolDetail,
    PoolTest, Queue, QueueQuery, RecentQuery, RecentSamples, Reloaded, Resubmission, SampleQuery, ServerDetail, ShareRow, Shutdown, Status,
    Submission, Submitted, UsageQuery, UserUsage, WaitQuery, WhatIf, WhatIfQuery, Why,
};
use crate::contact::{self, Contact};
use crate::places::Places;
use crate::samples::MinuteMean;
use crate::submission_key::SubmissionKey;

/// The longest dry run that can be configured.
const MAX_FORECAST: Duration = Duration::from_secs(86_400);
/// A simulation may take a minute, after half a minute of waiting for a permit.
const MAX_WHAT_IF: Duration = Duration::from_secs(100);

/// Programs of a batch system may take half a minute, and wait for each other.
const MAX_POOL_TEST: Duration = Duration::from_secs(90);

/// The wait before a submission is repeated.
const BEFORE_RETRY: Duration = Duration::from_secs(1);

/// The path of the user's notifications.
const NOTIFICATIONS: &str = "/v1/notifications";

type Answer<T> = Result<T, ClientError>;

/// A client of a manager. Calls block. The connection is kept, and opened again after a restart of the manager.
#[derive(Debug)]
pub struct Client(Connection);

/// Whether no manager listens there.
fn is_unused(error: &ClientError) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    matches!(error, ClientError::Unreachable { error, .. } if matches!(error.kind(), NotFound | ConnectionRefused | NotADirectory))
}

/// What a manager on another host has left beside its socket, or in the user's own folder of state.
fn contact_beside(socket: &Path) -> Answer<Option<Contact>> {
    let own = Places::own();
    let folder = if *socket == own.socket { Some(own.state.as_path()) } else { socket.parent() };
    let Some(file) = folder.map(contact::file) else { return Ok(None) };
    contact::read(&file).map_err(|error| ClientError::Unusable(format!("cannot use {}: {error}", file.display())))
}

impl Client {
    /// Connects to the manager at `host`, else at `CARMA_HOST`, else to a local one.
    pub fn connect(host: Option<&str>) -> Answer<Self> {
        let variable = std::env::var(HOST_VARIABLE).ok().filter(|host| !host.is_empty());
        if let Some(host) = host.map(str::to_owned).or(variable) {
            return Self::at(host.parse()?);
        }
        let sockets = Places::sockets();
        for socket in &sockets {
            match Self::at(Address::Socket(socket.clone())) {
                Err(error) if is_unused(&error) => {}
                other => return other,
            }
            // A manager of the user may run on another host, with the same folder of state.
            if let Some(contact) = contact_beside(socket)? {
                match Self::at(Address::Own(Box::new(contact))) {
                    Err(error) if is_unused(&error) => {}
                    other => return other,
                }
            }
        }
        Err(ClientError::NoManager(sockets))
    }

    /// The manager at an address.
    pub fn at(address: Address) -> Answer<Self> {
        let token = match &address {
            Address::Socket(_) => None,
            Address::Network { .. } => Token::own()?,
            Address::Own(contact) => Some(Token::new(&contact.token)?),
        };
        Connection::open(address, token).map(Self)
    }

    /// Another connection to the same manager, for parallel calls.
    pub fn another(&self) -> Answer<Self> {
        Connection::open(self.0.address.clone(), self.0.token.clone()).map(Self)
    }

    /// Its address.
    pub const fn address(&self) -> &Address {
        &self.0.address
    }

    /// Submits jobs. They are on the disk when this returns. A broken connection is tried once more; the key keeps jobs from being submitted twice.
    pub fn submit(&mut self, submission: &Submission) -> Answer<Submitted> {
        let (key, body) = (SubmissionKey::fresh()?, document(submission)?);
        let call = || Call { key: Some(&key), ..Call::new(&Method::POST, "/v1/jobs", Some(body.clone())) };
        match self.answer(call()) {
            Err(broken @ ClientError::BrokenOff(_)) => {
                thread::sleep(BEFORE_RETRY);
                // Without an answer, it stays unknown whether the first call was done.
                self.answer(call()).map_err(|error| if error.is_absence() { broken } else { error })
            }
            answer => answer,
        }
    }

    /// Previews the placement of jobs. This can take as long as a dry run and those before it.
    pub fn forecast(&mut self, submission: &Submission) -> Answer<Vec<Forecast>> {
        self.answer(Call::new(&Method::POST, "/v1/forecast", Some(document(submission)?)).with_timeout(MAX_FORECAST))
    }

    /// Everything about a job: `12`, `12_3`, `last` or `@name`.
    pub fn job(&mut self, job: &str) -> Answer<JobDetail> {
        self.get(&job_path(job, ""))
    }

    /// How busy a job kept its GPUs over time.
    pub fn utilisation(&mut self, job: &str) -> Answer<Vec<AttemptUtilisation>> {
        self.get(&job_path(job, "/utilisation"))
    }

    /// Why a job waits.
    pub fn why(&mut self, job: &str) -> Answer<Why> {
        self.get(&job_path(job, "/why"))
    }

    /// Waits for the end of a job, at most as long as the query says. Returns its state then.
    pub fn wait(&mut self, job: JobId, query: WaitQuery) -> Answer<JobDetail> {
        let path = with_query(&job_path(&job.0.to_string(), "/wait"), &query)?;
        let waits = Duration::from_secs(query.seconds.unwrap_or_default().into());
        self.answer(Call::new(&Method::GET, &path, None).with_timeout(waits))
    }

    /// Unfinished jobs.
    pub fn queue(&mut self, query: &QueueQuery) -> Answer<Queue> {
        self.get(&with_query("/v1/queue", query)?)
    }

    /// All unfinished jobs of one user or of all, read page by page.
    pub fn whole_queue(&mut self, user: Option<UserId>) -> Answer<Queue> {
        let mut query = QueueQuery { user, limit: Some(MAX_ROWS), ..QueueQuery::default() };
        let mut all = self.queue(&query)?;
        while let Some(next) = all.next.take() {
            query.after = Some(next);
            let page = self.queue(&query)?;
            all.jobs.extend(page.jobs);
            all.next = page.next;
        }
        Ok(all)
    }

    /// Jobs, the latest first.
    pub fn history(&mut self, query: &HistoryQuery) -> Answer<Vec<JobSummary>> {
        self.get(&with_query("/v1/history", query)?)
    }

    /// The fair share of users.
    pub fn shares(&mut self) -> Answer<Vec<ShareRow>> {
        self.get("/v1/shares")
    }

    /// A user's jobs, GPU time, energy and fair share. By name or number.
    pub fn user(&mut self, user: &str, query: &UsageQuery) -> Answer<UserUsage> {
        self.get(&with_query(&format!("/v1/users/{}", escaped(user)), query)?)
    }

    /// Sums of energy.
    pub fn energy(&mut self, query: &EnergyQuery) -> Answer<EnergyReport> {
        self.get(&with_query("/v1/energy", query)?)
    }

    /// Submits a job once more, or all jobs of an array.
    pub fn resubmit(&mut self, job: &str, resubmission: &Resubmission) -> Answer<Submitted> {
        self.call(&Method::POST, &job_path(job, "/resubmit"), Some(document(resubmission)?))
    }

    /// Acts on a job, or on all jobs of an array.
    pub fn act(&mut self, job: &str, action: &JobAction) -> Answer<ActionResult> {
        let word = match action {
            JobAction::Cancel => "/cancel",
            JobAction::Hold => "/hold",
            JobAction::Release => "/release",
            JobAction::Requeue => "/requeue",
            JobAction::Change(change) => return self.call(&Method::PATCH, &job_path(job, ""), Some(document(change)?)),
        };
        self.call(&Method::POST, &job_path(job, word), None)
    }

    /// GPUs, and the jobs on them.
    pub fn gpus(&mut self) -> Answer<Vec<GpuDetail>> {
        self.get("/v1/gpus")
    }

    /// The samples of the last minutes.
    pub fn recent(&mut self, query: &RecentQuery) -> Answer<Vec<RecentSamples>> {
        self.get(&with_query("/v1/recent", query)?)
    }

    /// The utilisation of a GPU over time, and the attempts on it.
    pub fn timeline(&mut self, gpu: &str, query: &SampleQuery) -> Answer<GpuTimeline> {
        self.get(&with_query(&format!("/v1/gpus/{}/timeline", escaped(gpu)), query)?)
    }

    /// The means of a GPU per minute.
    pub fn samples(&mut self, gpu: &str, query: &SampleQuery) -> Answer<Vec<MinuteMean>> {
        self.get(&with_query(&format!("/v1/gpus/{}/samples", escaped(gpu)), query)?)
    }

    /// Drains a GPU, or resumes it: `3` or `s0/gpu3/mig1`.
    pub fn drain(&mut self, gpu: &str, drained: bool) -> Answer<DrainResult> {
        let word = if drained { "drain" } else { "resume" };
        let result: Option<DrainResult> = self.call(&Method::POST, &format!("/v1/gpus/{}/{word}", escaped(gpu)), None)?;
        // A manager of version 0.1.0 does not say.
        Ok(result.unwrap_or(DrainResult { changed: true, lost: false }))
    }

    /// The servers of agents.
    pub fn servers(&mut self) -> Answer<Vec<ServerDetail>> {
        self.get("/v1/servers")
    }

    /// The pools, and their pilots.
    pub fn pools(&mut self) -> Answer<Vec<PoolDetail>> {
        self.get("/v1/pools")
    }

    /// Adds a pool.
    pub fn add_pool(&mut self, new: &NewPool) -> Answer<()> {
        self.order("/v1/pools", Some(document(new)?))
    }

    /// Pauses, resumes or removes a pool.
    pub fn change_pool(&mut self, pool: &str, change: PoolChange) -> Answer<()> {
        self.order(&format!("/v1/pools/{}", escaped(pool)), Some(document(&change)?))
    }

    /// Asks the batch system whether it would accept a pilot of a pool.
    pub fn test_pool(&mut self, pool: &str) -> Answer<PoolTest> {
        let path = format!("/v1/pools/{}/test", escaped(pool));
        self.answer(Call::new(&Method::POST, &path, None).with_timeout(MAX_POOL_TEST))
    }

    /// Simulates past jobs under other policies. This can take as long as the simulation and those before it.
    pub fn what_if(&mut self, query: &WhatIfQuery) -> Answer<WhatIf> {
        let path = with_query("/v1/what-if", query)?;
        self.answer(Call::new(&Method::GET, &path, None).with_timeout(MAX_WHAT_IF))
    }

    /// The user that the manager sees.
    pub fn me(&mut self) -> Answer<Me> {
        self.get("/v1/me")
    }

    /// The notifications of the user.
    pub fn notifications(&mut self) -> Answer<Vec<Notification>> {
        self.get(NOTIFICATIONS)
    }

    /// Replaces the notifications of the user.
    pub fn set_notifications(&mut self, notifications: &[Notification]) -> Answer<Vec<Notification>> {
        self.call(&Method::PUT, NOTIFICATIONS, Some(document(&notifications)?))
    }

    /// Sends a test message over all channels of the user. Returns the results.
    pub fn try_notifications(&mut self) -> Answer<Vec<ChannelTest>> {
        self.call(&Method::POST, "/v1/notifications/test", None)
    }

    /// The status of the manager.
    pub fn status(&mut self) -> Answer<Status> {
        self.get("/v1/status")
    }

    /// Its metrics, in Prometheus's text format.
    pub fn metrics(&mut self) -> Answer<String> {
        let response = self.0.ask(Call::new(&Method::GET, "/metrics", None))?;
        let page = self.0.read(response)?;
        String::from_utf8(page.to_vec()).map_err(|error| ClientError::Incomprehensible(error.to_string()))
    }

    /// Its configuration.
    pub fn configuration(&mut self) -> Answer<ConfigurationDetail> {
        self.get("/v1/configuration")
    }

    /// Reloads the configuration.
    pub fn reload(&mut self) -> Answer<Reloaded> {
        self.call(&Method::POST, "/v1/configuration/reload", None)
    }

    /// Stops the manager. Its jobs continue.
    pub fn shutdown(&mut self, shutdown: Shutdown) -> Answer<()> {
        self.order("/v1/shutdown", Some(document(&shutdown)?))
    }

    /// A log of a job, as a stream.
    pub fn logs(&mut self, job: &str, query: LogQuery) -> Answer<Log<'_>> {
        self.stream(&with_query(&job_path(job, "/logs"), &query)?)
    }

    /// Events: stored ones after a number and then new ones, or only new ones.
    pub fn events(&mut self, after: Option<u64>) -> Answer<Events<'_>> {
        let path = after.map_or_else(|| "/v1/events".to_owned(), |sequence| format!("/v1/events?after={sequence}"));
        self.stream(&path).map(Events::new)
    }

    /// Everything about many jobs, as a stream.
    pub fn export(&mut self, query: &HistoryQuery) -> Answer<Export<'_>> {
        self.stream(&with_query("/v1/export", query)?).map(Export::new)
    }

    /// The terminal of an interactive job. A thread copies the bytes until one side ends.
    pub fn terminal(mut self, job: &str) -> Answer<UnixStream> {
        let path = job_path(job, "/terminal");
        let response = self.0.ask(Call { protocol: Some("carma-terminal"), ..Call::new(&Method::GET, &path, None) })?;
        let lost = |error: hyper::Error| ClientError::BrokenOff(error.to_string());
        let upgraded = self.0.runtime.block_on(hyper::upgrade::on(response)).map_err(lost)?;
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            self.0.runtime.block_on(async {
                // When one side is gone, no report is possible.
                if let Ok(mut theirs) = tokio::net::UnixStream::from_std(theirs) {
                    let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut theirs).await;
                }
            });
        })?;
        Ok(ours)
    }

    /// Sends a GET request. The path may have a query.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> Answer<T> {
        self.call(&Method::GET, path, None)
    }

    /// Sends a POST request.
    pub fn post<T: DeserializeOwned>(&mut self, path: &str, body: &impl Serialize) -> Answer<T> {
        self.call(&Method::POST, path, Some(document(body)?))
    }

    /// Sends a request whose answer has no content.
    fn order(&mut self, path: &str, body: Option<Bytes>) -> Answer<()> {
        let response = self.0.ask(Call::new(&Method::POST, path, body))?;
        self.0.read(response).map(drop)
    }

    fn call<T: DeserializeOwned>(&mut self, method: &Method, path: &str, body: Option<Bytes>) -> Answer<T> {
        self.answer(Call::new(method, path, body))
    }

    fn answer<T: DeserializeOwned>(&mut self, call: Call<'_>) -> Answer<T> {
        let response = self.0.ask(call)?;
        let answer = self.0.read(response)?;
        serde_json::from_slice(&answer).map_err(|error| {
            // JSON comes from a manager of another version, anything else from another program.
            let kind = serde_json::from_slice::<IgnoredAny>(&answer).map_or("not JSON", |_| "another version's");
            ClientError::Incomprehensible(format!("{kind}, {error}"))
        })
    }

    fn stream(&mut self, path: &str) -> Answer<Log<'_>> {
        let response = self.0.ask(Call::new(&Method::GET, path, None))?;
        Ok(Log::new(&self.0, response.into_body()))
    }
}

fn document(body: &impl Serialize) -> Answer<Bytes> {
    to_vec(body).map(Bytes::from).map_err(|error| ClientError::Unusable(error.to_string()))
}

fn job_path(job: &str, rest: &str) -> String {
    format!("/v1/jobs/{}{rest}", escaped(job))
}
