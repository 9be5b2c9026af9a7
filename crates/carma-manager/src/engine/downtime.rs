//! Time that passed while no manager ran. Attempts of this host tell it when they are adopted, those of agents when these connect.

use carma_core::{AttemptId, Event, Seconds, ServerId, Time};

use super::state::EngineState;

/// Less is the time that a launch takes.
const MIN_REPORTED: Seconds = Seconds::from_secs(1);

impl EngineState {
    /// An attempt of an earlier manager has run for this long, in the host's time. Its time limit counts all of it, so the core's time advances.
    pub(super) fn ran_without_manager(&mut self, attempt: AttemptId, ran: Seconds) {
        // An agent that only lost its connection says the same again.
        if self.attempts.get(attempt).is_none_or(|active| active.started) {
            return;
        }
        let active = self.decisions.job(attempt.job).and_then(|job| job.state.active()).filter(|active| active.attempt == attempt);
        let Some(now) = active.map(|active| active.launched_at + ran.times(self.decisions.clock.speed())) else { return };
        let missing = now - self.decisions.now();
        if missing >= MIN_REPORTED {
            tracing::info!(job = attempt.job.0, attempt = attempt.number, "{attempt} ran for {missing} without a manager");
            self.advance(missing);
        }
    }

    /// Moves the core's time, and keeps what follows the wall clock in its place.
    fn advance(&mut self, span: Seconds) {
        self.decisions.clock.advance(span);
        self.listeners.begin(self.decisions.clock);
        self.move_begin_times();
        let ends: Vec<(ServerId, Option<Time>)> =
            self.servers.iter().map(|server| (server.stored.id, server.stored.ends.map(|ends| self.core_time(ends)))).collect();
        for (server, at) in ends.into_iter().filter(|(_, at)| at.is_some()) {
            let _ = self.decisions.tell(Event::ServerEnds { server, at });
        }
        // Its samples carry the time.
        if let Err(error) = self.gpus.start_sampling(&self.decisions) {
            tracing::error!("cannot sample the GPUs: {error}");
        }
    }
}
