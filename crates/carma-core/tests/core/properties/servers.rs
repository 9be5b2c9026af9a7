//! Servers that come, end at a known time, are lost and go.

use carma_core::*;
use proptest::prelude::*;
use proptest::sample::Index;

use super::world::World;
use crate::lab::window;

/// Something that happens to a server, picked from those there are at the time.
#[derive(Debug, Clone)]
pub(super) enum ServerStep {
    /// A server with such GPUs is attached; it may end after this many seconds.
    Attach(Vec<u64>, Option<u64>),
    /// It ends after this many seconds from now, or not at all.
    Ends(Index, Option<u64>),
    Drain(Index),
    /// All its attempts are lost. If it is gone, nothing starts there any more, and it is detached.
    Lose(Index, bool),
    /// Refused while it has attempts.
    Detach(Index),
}

pub(super) fn server_steps() -> impl Strategy<Value = ServerStep> {
    let pick = any::<Index>;
    let ends = || prop::option::weighted(0.7, 0_u64..600);
    let gpus = prop::collection::vec(prop::sample::select(vec![11_u64, 40, 80]), 0..4);
    prop_oneof![
        3 => (gpus, ends()).prop_map(|(gpus, ends)| ServerStep::Attach(gpus, ends)),
        4 => (pick(), ends()).prop_map(|(server, ends)| ServerStep::Ends(server, ends)),
        2 => pick().prop_map(ServerStep::Drain),
        2 => (pick(), any::<bool>()).prop_map(|(server, gone)| ServerStep::Lose(server, gone)),
        2 => pick().prop_map(ServerStep::Detach),
    ]
}

/// Whether an attempt is on a server, with or without GPUs.
fn is_on(active: &Active, server: ServerId) -> bool {
    active.placement.server == server || active.placement.devices.iter().any(|granted| granted.device.server() == server)
}

impl World {
    pub(super) fn server_step(&mut self, step: ServerStep) {
        let servers: Vec<ServerId> = self.scheduler().fleet().servers().iter().map(|server| server.spec.id).collect();
        match step {
            ServerStep::Attach(gpus, ends) => {
                let ends = ends.map(|seconds| self.now + Seconds::from_secs(seconds));
                self.attach_server(ends, &gpus);
            }
            _ if servers.is_empty() => {}
            ServerStep::Ends(index, ends) => {
                let at = ends.map(|seconds| self.now + Seconds::from_secs(seconds));
                self.accepted(Event::ServerEnds { server: *index.get(&servers), at });
            }
            ServerStep::Drain(index) => {
                let server = *index.get(&servers);
                self.accepted(Event::ServerDraining { server });
                let settled = self.scheduler().clone();
                self.accepted(Event::ServerDraining { server });
                assert!(*self.scheduler() == settled, "drained again, something changed");
            }
            ServerStep::Lose(index, gone) => self.lose(*index.get(&servers), gone),
            ServerStep::Detach(index) => {
                let server = *index.get(&servers);
                let in_use = self.active().iter().any(|active| is_on(active, server));
                assert_eq!(self.event(Event::ServerDetached { server }), !in_use);
            }
        }
    }

    /// Attaches a server with a name that no server has had, and GPUs that have been seen.
    pub(super) fn attach_server(&mut self, ends: Option<Time>, gpus: &[u64]) {
        let server = ServerId(100 + self.servers_attached);
        self.servers_attached += 1;
        self.accepted(Event::ServerAttached(ServerSpec { ends, ..ServerSpec::new(server) }));
        for (ordinal, memory) in (0..).zip(gpus) {
            let device = DeviceId::gpu(server, ordinal);
            self.accepted(Event::GpuAttached(DeviceSpec::new(device, MiB(memory * 1024))));
            self.accepted(Event::GpuWindow { device, window: window(0, 0.0, 0.0, 0.0) });
        }
    }

    fn lose(&mut self, server: ServerId, gone: bool) {
        if gone {
            // Otherwise jobs could start where nothing is left.
            self.accepted(Event::HostShort { server });
        }
        for Active { attempt, .. } in self.active().iter().filter(|active| is_on(active, server)) {
            self.accepted(Event::JobExited { attempt: *attempt, verdict: Verdict::ServerLost });
        }
        if gone {
            self.accepted(Event::ServerDetached { server });
            assert!(self.scheduler().fleet().devices().all(|device| device.id().server() != server));
        }
    }

    /// Nothing starts on a server that ends soon, or ends before the job would. A job that has to leave a server pays nothing for it.
    pub(super) fn check_servers(&self, before: &Scheduler, actions: &[Action]) {
        let scheduler = self.scheduler();
        for action in actions {
            match action {
                Action::Launch { attempt, placement, .. } => {
                    let job = scheduler.job(attempt.job).unwrap();
                    let on_gpus = placement.devices.iter().map(|granted| granted.device.server());
                    for server in on_gpus.chain([placement.server]) {
                        check_start(job, scheduler.fleet().server(server).unwrap(), scheduler.now());
                    }
                }
                Action::Signal { attempt, signal, reason: StopReason::ServerEnding } => {
                    assert!(scheduler.job(attempt.job).unwrap().spec.may_checkpoint, "{attempt} cannot checkpoint");
                    assert_ne!(*signal, Signal::Terminate);
                }
                Action::Requeue { job, reason: RequeueReason::ServerEnding | RequeueReason::After(Verdict::ServerLost), .. } => {
                    let paid = |job: &Job| (job.climb, job.failures, job.displacements);
                    assert_eq!(scheduler.job(*job).map(paid), before.job(*job).map(paid), "{job} paid for its server");
                }
                Action::Finish { outcome: Outcome::ServerLost, job } => panic!("{job} is over because its server is"),
                _ => {}
            }
        }
    }
}

fn check_start(job: &Job, server: &Server, now: Time) {
    let (id, on) = (job.id(), server.spec.id);
    assert!(!server.ending, "{id} starts on {on}, which ends soon");
    let Some(left) = server.spec.ends.filter(|_| !job.spec.may_checkpoint).map(|ends| ends - now) else { return };
    match (job.spec.time_limit, job.outlasted) {
        (Some(limit), _) => assert!(limit <= left, "{id} may take {limit}, and {on} ends in {left}"),
        (None, Some(ran)) => assert!(ran < left, "{id} took {ran} and was lost, and {on} ends in {left}"),
        (None, None) => {}
    }
}
