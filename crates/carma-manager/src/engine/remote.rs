//! What the engine does when agents connect, report and go.

use std::net::{Ipv4Addr, SocketAddr};

use carma_core::{Event, ServerId, Time, Verdict};
use carma_gpu::DriverError;

use super::decide::Effect;
use super::input::Input;
use super::servers::HelloAnswer;
use super::state::EngineState;
use crate::agents::{AgentListener, AgentReport, Session, complete_logs};
use crate::batch::BatchSystem;
use crate::host::{HostChange, HostReading};
use crate::host_gpus::GpuSample;
use crate::judge::Judgement;
use crate::link::{AgentHello, ToAgent, WireSample, read_end};
use crate::store::Change;
use crate::units::UnixMillis;

impl EngineState {
    pub(super) fn agent_reported(&mut self, report: AgentReport) {
        match report {
            AgentReport::Hello { hello, session } => self.greet(*hello, session),
            AgentReport::Samples(session, samples) => self.remote_samples(&session, samples),
            AgentReport::GpuEvent(session, event) => {
                if let Some(server) = self.servers.of(&session).map(|server| server.stored.id) {
                    self.gpus.gpu_event(&mut self.decisions, server, &event);
                }
            }
            AgentReport::Host(session, reading) => self.remote_host(&session, *reading),
            AgentReport::Draining { session, left, ends_now, reason } => {
                let now = self.decisions.wall();
                let speed = self.decisions.clock.speed();
                let Some(server) = self.servers.of(&session) else { return };
                server.ends_now |= ends_now;
                server.draining = Some(reason.clone());
                if let Some(left) = left {
                    server.stored.ends = Some(UnixMillis(now.0 + (left.get() * 1000.0 * speed) as u64));
                }
                let (id, node, ends) = (server.stored.id, server.stored.node.clone(), server.stored.ends);
                self.servers.close_to_estimates(id);
                self.decisions.announce(format!("{id} on {node} takes nothing new: {reason}"));
                let _ = self.decisions.tell(Event::ServerEnds { server: id, at: ends.map(|ends| self.core_time(ends)) });
                let _ = self.decisions.tell(Event::ServerDraining { server: id });
            }
            AgentReport::Closed { session, left } => {
                if let Some(server) = self.servers.disconnect(&session)
                    && left
                    && self.attempts.on(server).is_empty()
                {
                    self.server_gone(server, "its agent has ended");
                }
            }
        }
    }

    /// Listens for agents, if an address is configured or there is a pool or a server. Starts what pools need.
    pub(super) fn serve_agents(&mut self) -> Result<(), String> {
        let settings = &self.setup.configuration.manager.agents;
        let wanted = settings.listen.is_some() || !self.servers.is_empty() || !self.pools.is_empty();
        if !wanted {
            return Ok(());
        }
        if !self.pools.is_empty() && !self.pools.has_batch_system() {
            let inputs = self.inputs.clone();
            let batch = BatchSystem::start(move |report| inputs.send(Input::Batch(report)).is_ok());
            self.pools.start(batch.map_err(|error| error.to_string())?);
        }
        let Some(agents) = self.servers.agents().filter(|_| self.pools.listener.is_none()) else { return Ok(()) };
        let address = settings.listen.map_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), Into::into);
        let host = settings.address.clone().or_else(host_name);
        // Agents on the same host need no name.
        let names: Vec<String> = host.into_iter().chain(["127.0.0.1".to_owned()]).collect();
        let inputs = self.inputs.clone();
        let report = move |report| inputs.send(Input::Agent(report)).is_ok();
        let listener = AgentListener::start(address, &names, &self.setup.places.state, agents, report);
        let listener = listener.map_err(|error| error.to_string())?;
        tracing::info!("agents connect to {}", listener.address());
        self.pools.listener = Some(listener);
        Ok(())
    }

    fn greet(&mut self, hello: AgentHello, session: Session) {
        let pilot = hello.pilot.as_ref().and_then(|name| self.pools.pilot(name)).cloned();
        match self.servers.greet(&hello, pilot.as_ref(), self.decisions.clock.speed()) {
            HelloAnswer::Back(server) => {
                tracing::info!("the agent of {server} on {} is back", hello.node);
                self.welcome(server, &session);
            }
            HelloAnswer::New => {
                let now = self.decisions.wall();
                let stored = self.servers.add(hello, now).clone();
                let (id, node) = (stored.id, stored.node.clone());
                self.decisions.batch.changes.push(Change::ServerChanged(Box::new(stored)));
                self.attach_server(id);
                self.pools.connected(&mut self.decisions, id, self.servers.get(id), now);
                self.decisions.announce(format!("{id} joined: {} GPUs of {node}", self.gpus.remote(id).iter().count()));
                // The agent starts nothing before its server is in the store.
                self.decisions.batch.effects.push(Effect::Welcome(id, session));
            }
            HelloAnswer::Wait(reason) => session.send(ToAgent::Wait { reason }),
            HelloAnswer::Refused(reason) => {
                tracing::warn!("refuses the agent on {}: {reason}", hello.node);
                session.send(ToAgent::Refused { reason });
            }
        }
    }

    /// An agent is one of the servers.
    pub(super) fn welcome(&mut self, server: ServerId, session: &Session) {
        self.servers.connect(server, session, self.setup.configuration.manager.gpus.period);
        self.ask_remote_activity(server);
    }

    pub(super) fn ask_remote_activity(&self, server: ServerId) {
        let every = self.gpus.activity_period(&self.decisions);
        let every = every.and_then(|every| carma_core::Seconds::new(every.as_secs_f64()).ok());
        self.servers.send(server, ToAgent::AskActivity(every));
    }

    /// Tells the core of a server and its GPUs.
    pub(super) fn attach_server(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(id) else { return };
        let ends = server.stored.ends.map(|ends| self.core_time(ends));
        let (spec, devices) = (server.spec(ends), server.devices());
        let attached = self
            .decisions
            .prepare(Event::ServerAttached(spec))
            .and_then(|()| devices.iter().try_for_each(|device| self.decisions.prepare(Event::GpuAttached(device.spec()))));
        if let Err(error) = attached {
            tracing::error!("cannot use {id}: {error}");
        }
        if self.setup.observes || self.draining {
            let _ = self.decisions.prepare(Event::HostShort { server: id });
        }
        self.gpus.add_remote(id, devices);
    }

    /// The core's time at a time of the manager's wall clock.
    pub(super) fn core_time(&self, at: UnixMillis) -> Time {
        let left = at.0.saturating_sub(self.decisions.wall().0);
        self.decisions.now() + carma_core::Seconds::new(left as f64 / 1000.0).unwrap_or_default()
    }

    fn remote_samples(&mut self, session: &Session, samples: Vec<WireSample>) {
        let Some(server) = self.servers.of(session).map(|server| server.stored.id) else { return };
        let now = self.decisions.now();
        let devices = self.gpus.remote(server);
        let local = |mut sample: WireSample| {
            let device = devices.by_uuid(&sample.device)?.id;
            Some(GpuSample {
                device,
                at: now,
                activity: sample.activity(),
                reading: sample.reading.map_err(DriverError::Reported),
                counters: sample.counters,
                source: sample.source,
                owners: Some(sample.owners.into_iter().collect()),
                mps_server: None,
            })
        };
        let samples = samples.into_iter().filter_map(local).collect();
        self.accounting.sampled(&mut self.decisions, &mut self.gpus, &mut self.attempts, samples);
        self.check_attempts(server);
        self.listeners.sampled(self.decisions.wall());
    }

    fn remote_host(&mut self, session: &Session, reading: HostReading) {
        let limits = self.setup.configuration.manager.host.clone();
        let launches = !self.setup.observes && !self.draining;
        let Some(known) = self.servers.of(session) else { return };
        let (server, change) = (known.stored.id, known.host.take(&reading, &limits));
        let _ = self.decisions.tell(Event::HostMemory { server, available: reading.memory_available });
        known.reading = Some(reading);
        match change.filter(|_| launches) {
            None => {}
            Some(HostChange::Short(shortage)) => {
                self.decisions.warn(format!("no new attempts start on {server}: {shortage}"));
                let _ = self.decisions.tell(Event::HostShort { server });
            }
            Some(HostChange::Recovered) => {
                let _ = self.decisions.tell(Event::HostRecovered { server });
            }
        }
    }

    /// Gives up servers whose leases ran out.
    pub(super) fn check_servers(&mut self) {
        for server in self.servers.lost() {
            self.server_gone(server, "its agent did not answer within the lease");
        }
    }

    /// A server is gone. Its attempts have ended, and their jobs are put back.
    pub(super) fn server_gone(&mut self, server: ServerId, reason: &str) {
        // Nothing may start there while its attempts are taken off.
        let _ = self.decisions.tell(Event::HostShort { server });
        let jobs = self.setup.places.state.join("attempts");
        for attempt in self.attempts.on(server) {
            // It may have ended by itself while this manager was away.
            if let Some(leftovers) = read_end(&jobs, attempt) {
                complete_logs(&self.setup.places.state, &leftovers);
                self.ended(&leftovers);
                continue;
            }
            let reason = format!("its server was lost: {reason}");
            let judgement = Judgement { verdict: Verdict::ServerLost, reason, blame: None, needed: None };
            self.attempts.poll_last(&mut self.decisions, attempt);
            self.conclude(attempt, None, &judgement, Event::JobExited { attempt, verdict: Verdict::ServerLost });
        }
        if let Err(error) = self.decisions.tell(Event::ServerDetached { server }) {
            tracing::error!("{server} cannot be detached: {error}");
        }
        let gone = self.servers.remove(server);
        self.gpus.remove_remote(server);
        self.decisions.batch.changes.push(Change::ServerGone(server));
        let Some(gone) = gone else { return };
        self.decisions.warn(format!("{server} on {} was lost: {reason}", gone.stored.node));
        let Some(pilot) = gone.stored.pilot else { return };
        match gone.draining.filter(|_| !gone.used) {
            // Another one would do the same.
            Some(reason) => self.pools.failed(&mut self.decisions, &pilot, &format!("a pilot ended before a job started: {reason}")),
            None => self.pools.server_gone(&mut self.decisions, &pilot),
        }
    }
}

/// The name of this host.
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(name).filter(|name| !name.is_empty())
}
