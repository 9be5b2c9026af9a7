//! The servers of agents: which there are, whether their leases last, and which agents are welcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carma_core::{DeviceId, GpuId, MiB, Seconds, ServerId, ServerSpec, Time};

use crate::agents::{AgentExecutor, Session};
use crate::cluster::{JoinedServer, Pilot};
use crate::configuration::AgentConfig;
use crate::host::{HostReading, ShortageTracker};
use crate::host_gpus::{Device, Devices};
use crate::link::{AgentHello, ToAgent};
use crate::store::Loaded;
use crate::units::UnixMillis;

/// Even a small server runs this many jobs without GPUs at once.
const MIN_CPU_JOBS: u32 = 4;

/// A server of an agent.
#[derive(Debug)]
pub(crate) struct RemoteServer {
    pub(crate) stored: JoinedServer,
    session: Option<Session>,
    /// Without a session: since when the lease may not have been renewed.
    silent_since: Instant,
    /// Why nothing new starts there.
    pub(crate) draining: Option<String>,
    /// Its batch system ends it now.
    pub(crate) ends_now: bool,
    /// Another agent of the same pilot replaces it.
    fenced: bool,
    /// It has had an attempt.
    pub(crate) used: bool,
    /// Since when it has no attempts.
    pub(crate) idle_since: Option<Instant>,
    pub(crate) host: ShortageTracker,
    pub(crate) reading: Option<HostReading>,
}

/// All servers of agents.
pub(crate) struct RemoteServers {
    /// Unset in tests without agents.
    agents: Option<Arc<AgentExecutor>>,
    known: BTreeMap<ServerId, RemoteServer>,
    next: ServerId,
    lease: Duration,
    grace: Duration,
}

/// The answer to the hello of an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelloAnswer {
    /// It was this server before.
    Back(ServerId),
    /// It is a new server.
    New,
    Wait(String),
    Refused(String),
}

impl RemoteServers {
    pub(crate) fn new(agents: Option<Arc<AgentExecutor>>, settings: &AgentConfig) -> Self {
        let real = |seconds: Seconds| Duration::from_secs_f64(seconds.get());
        let (lease, grace) = (real(settings.lease), real(settings.grace));
        Self { agents, known: BTreeMap::new(), next: ServerId(1), lease, grace }
    }

    /// Restarts with the stored servers. Connections of the same manager stay, those of an earlier one are gone.
    pub(crate) fn begin(&mut self, loaded: &Loaded) {
        let mut before = std::mem::take(&mut self.known);
        for stored in &loaded.servers {
            let known = before.remove(&stored.id).unwrap_or_else(|| RemoteServer { used: true, ..RemoteServer::new(stored.clone()) });
            self.known.insert(stored.id, known);
        }
        self.next = self.next.max(loaded.next_server);
    }

    pub(crate) fn agents(&self) -> Option<Arc<AgentExecutor>> {
        self.agents.clone()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RemoteServer> {
        self.known.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut RemoteServer> {
        self.known.values_mut()
    }

    pub(crate) fn get(&self, server: ServerId) -> Option<&RemoteServer> {
        self.known.get(&server)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The server of a session, unless another session has replaced it.
    pub(crate) fn of(&mut self, session: &Session) -> Option<&mut RemoteServer> {
        let server = self.known.get_mut(&session.server()?)?;
        server.session.as_ref().is_some_and(|current| current.is(session)).then_some(server)
    }

    /// Whether an agent is welcome. `pilot`: the pilot that it says it runs in, if the manager has requested it.
    pub(crate) fn greet(&mut self, hello: &AgentHello, pilot: Option<&Pilot>, speed: f64) -> HelloAnswer {
        if (hello.speed - speed).abs() > f64::EPSILON {
            return HelloAnswer::Refused(format!("its clock runs {} times as fast as real time, the manager's {speed} times", hello.speed));
        }
        if hello.pilot.is_some() && pilot.is_none() {
            return HelloAnswer::Refused("this manager did not request its pilot, or has given it up".to_owned());
        }
        let same = |known: &&mut RemoteServer| known.stored.incarnation == hello.incarnation;
        if let Some(known) = self.known.values_mut().find(same) {
            return if known.fenced { HelloAnswer::Refused(FENCED.to_owned()) } else { HelloAnswer::Back(known.stored.id) };
        }
        if hello.server.is_some() {
            return HelloAnswer::Refused("its lease has expired, and its jobs were requeued".to_owned());
        }
        // A batch system may start a pilot twice. The new one waits until nothing of the old one can run.
        let older = self.known.values_mut().find(|known| hello.pilot.is_some() && known.stored.pilot == hello.pilot);
        if let Some(older) = older {
            older.fenced = true;
            older.session.iter().for_each(|session| session.send(ToAgent::Refused { reason: FENCED.to_owned() }));
            return HelloAnswer::Wait(format!("an earlier agent of its pilot is {}", older.stored.id));
        }
        let holder = |device: &Device| {
            let mut on_node = self.known.values().filter(|known| known.stored.node == hello.node);
            on_node.find(|known| known.stored.facts.devices.iter().any(|other| other.uuid == device.uuid))
        };
        match hello.facts.devices.iter().find_map(|device| Some((device, holder(device)?))) {
            None => HelloAnswer::New,
            Some((device, holder)) if holder.is_connected() => {
                HelloAnswer::Refused(format!("{} of {} is already used through another agent", device.uuid, hello.node))
            }
            // The batch system gives GPUs of a dead agent away at once. The lease of that agent lasts a little longer.
            Some((device, holder)) => {
                HelloAnswer::Wait(format!("{} belongs to {}, and its lease has not expired", device.uuid, holder.stored.id))
            }
        }
    }

    /// A new server, for the store and the core.
    pub(crate) fn add(&mut self, hello: AgentHello, now: UnixMillis) -> &JoinedServer {
        let id = self.next;
        self.next = ServerId(id.0 + 1);
        let ends = hello.left.map(|left| UnixMillis(now.0 + (left.get() * 1000.0 * hello.speed) as u64));
        let mut facts = hello.facts;
        for device in &mut facts.devices {
            device.id = DeviceId { gpu: GpuId { server: id, ..device.id.gpu }, ..device.id };
        }
        let AgentHello { pilot, incarnation, node, batch_job, .. } = hello;
        let stored = JoinedServer { id, pilot, incarnation, node, batch_job, facts, joined: now, ends };
        &self.known.entry(id).or_insert(RemoteServer::new(stored)).stored
    }

    /// The connection of a welcome agent.
    pub(crate) fn connect(&mut self, server: ServerId, session: &Session, period: Seconds) {
        let Some(known) = self.known.get_mut(&server) else { return };
        if let Some(old) = known.session.replace(session.clone()) {
            old.close();
        }
        session.assign(server);
        let lease = Seconds::new(self.lease.as_secs_f64()).unwrap_or(Seconds::ZERO);
        session.send(ToAgent::Welcome { server, lease, period });
        self.agents.iter().for_each(|agents| agents.connected(server, session.clone(), &known.stored.facts));
    }

    /// A connection is closed. Its lease continues until it expires.
    pub(crate) fn disconnect(&mut self, session: &Session) -> Option<ServerId> {
        let known = self.of(session)?;
        known.silent_since = Instant::now().checked_sub(session.close()).unwrap_or_else(Instant::now);
        known.session = None;
        let server = known.stored.id;
        self.agents.iter().for_each(|agents| agents.disconnected(server, session));
        Some(server)
    }

    /// Servers whose agents have certainly ended their attempts: their leases ran out a while ago.
    pub(crate) fn lost(&mut self) -> Vec<ServerId> {
        let limit = self.lease + self.grace;
        let is_lost = |known: &mut RemoteServer| match &known.session {
            Some(session) if session.silent() > limit => {
                // A beat may have been answered in between.
                let lost = session.close() > limit;
                if !lost {
                    known.silent_since = Instant::now();
                    known.session = None;
                }
                lost
            }
            Some(_) => false,
            None => known.silent_since.elapsed() > limit,
        };
        self.known.values_mut().filter_map(|known| is_lost(known).then_some(known.stored.id)).collect()
    }

    pub(crate) fn remove(&mut self, server: ServerId) -> Option<RemoteServer> {
        let mut known = self.known.remove(&server)?;
        if let Some(session) = known.session.take() {
            session.close();
            session.send(ToAgent::Refused { reason: "its server is given up".to_owned() });
            self.agents.iter().for_each(|agents| agents.disconnected(server, &session));
        }
        Some(known)
    }

    /// A server gets no new estimates.
    pub(crate) fn close_to_estimates(&self, server: ServerId) {
        self.agents.iter().for_each(|agents| agents.estimates().close(server));
    }

    /// Sends a message to the agent of a server, if it is connected.
    pub(crate) fn send(&self, server: ServerId, message: ToAgent) {
        if let Some(session) = self.known.get(&server).and_then(|known| known.session.as_ref()) {
            session.send(message);
        }
    }
}

const FENCED: &str = "another agent of the same pilot has replaced it";

impl RemoteServer {
    fn new(stored: JoinedServer) -> Self {
        Self {
            stored,
            session: None,
            silent_since: Instant::now(),
            draining: None,
            ends_now: false,
            fenced: false,
            used: false,
            idle_since: None,
            host: ShortageTracker::default(),
            reading: None,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// Whether its agent could estimate a job with this many GPUs.
    pub(crate) fn could_estimate(&self, gpus: u32) -> bool {
        self.is_connected() && self.draining.is_none() && self.stored.facts.devices.len() >= gpus as usize
    }

    /// Its description for the core.
    pub(crate) fn spec(&self, ends: Option<Time>) -> ServerSpec {
        let facts = &self.stored.facts;
        ServerSpec {
            cpu_jobs: facts.cores.map(|cores| cores.max(MIN_CPU_JOBS)),
            cores: facts.cores,
            host_memory: facts.host_memory,
            topology: facts.topology.clone(),
            ends,
            ..ServerSpec::new(self.stored.id)
        }
    }

    /// Its GPUs.
    pub(crate) fn devices(&self) -> Devices {
        self.stored.facts.devices.iter().cloned().collect()
    }

    /// Memory of its smallest GPU.
    pub(crate) fn gpu_memory(&self) -> Option<MiB> {
        self.stored.facts.devices.iter().map(|device| device.memory).min()
    }
}
