//! Why a job waits.

use carma_core::{Action, Event, Explanation, JobId, Obstacle, Wording};

use super::View;
use crate::api::{DeviceWhy, HostWhy, PredictedTime, Problem, Why};
use crate::engine::refusal::refused;
use crate::host::Shortage;
use crate::host_gpus::LOCAL_SERVER;

impl Why {
    /// An explanation in these words.
    pub(crate) fn new(explanation: Explanation, words: Wording<'_>) -> Self {
        let (summary, text) = (explanation.summary(words), explanation.text(words));
        let Explanation { job, state, reason, devices, hosts } = explanation;
        let devices = devices.into_iter().map(|answer| DeviceWhy { texts: answer.texts(words), answer }).collect();
        let hosts = hosts.into_iter().map(|answer| HostWhy { texts: answer.texts(words), answer }).collect();
        Self { job, state, reason, summary, starts: None, devices, hosts, pools: Vec::new(), text }
    }

    /// With what pools of pilots could do for the job.
    pub(crate) fn with_pools(mut self, pools: Vec<String>) -> Self {
        for pool in &pools {
            self.text = format!("{}\n{pool}", self.text);
        }
        self.pools = pools;
        self
    }

    /// With what a host is short of, where only one host is short of something.
    fn with_shortage(mut self, shortage: Option<&Shortage>) -> Self {
        let Some(shortage) = shortage else { return self };
        let (vague, clear) = (Obstacle::HostShort.to_string(), format!("its host is short of a resource: {shortage}"));
        let texts =
            self.devices.iter_mut().flat_map(|device| &mut device.texts).chain(self.hosts.iter_mut().flat_map(|host| &mut host.texts));
        for text in texts.chain([&mut self.summary, &mut self.text]) {
            *text = text.replace(&vague, &clear);
        }
        self
    }

    /// With the time at which the job is predicted to start, if there is a prediction.
    fn with_start(mut self, starts: Option<PredictedTime>) -> Self {
        if let Some(starts) = &starts {
            let (summary, rest) = (&self.summary, &self.text[self.summary.len()..]);
            self.text = format!("{summary}; starts {}{rest}", starts.text());
        }
        Self { starts, ..self }
    }

    /// The same answer with another summary, and without the answers of single devices and hosts.
    fn with_summary(self, summary: String) -> Self {
        Self { text: summary.clone(), summary, devices: Vec::new(), hosts: Vec::new(), ..self }
    }
}

impl View<'_> {
    /// What this host is short of, if no other server is short of anything.
    fn only_shortage(&self) -> Option<&Shortage> {
        self.host.shortage().filter(|_| self.servers.iter().all(|server| server.host.shortage().is_none()))
    }

    /// Why a job waits. A manager that launches nothing says what it would do.
    pub(crate) fn why(self, job: JobId) -> Result<Why, Problem> {
        let (scheduler, now) = (self.decisions.scheduler(), self.decisions.now());
        let mut explanation = scheduler.explain(job).map_err(|error| refused(&error))?;
        if let Some(stall) = scheduler.job(job).and_then(|job| job.state.active()?.stall) {
            let since = carma_format::duration((now - stall.since()).get());
            let summary = format!("{} runs, and {stall} (for {since})", scheduler.label(job));
            return Ok(self.worded(|words| Why::new(explanation, words)).with_summary(summary));
        }
        if let Some(unused) = scheduler.job(job).and_then(|job| self.unused_for(job)) {
            let summary = format!("{} was started, and has {unused}: does its program use CUDA?", scheduler.label(job));
            return Ok(self.worded(|words| Why::new(explanation, words)).with_summary(summary));
        }
        if !self.setup.observes && !self.draining {
            let starts = self.prediction_for(job).starts;
            return Ok(self.worded(|words| Why::new(explanation, words)).with_shortage(self.only_shortage()).with_start(starts));
        }
        let launches_nothing = if self.draining { "draining" } else { "observing" };
        let mut would = scheduler.clone();
        let actions = would.handle(Event::HostRecovered { server: LOCAL_SERVER }, now).unwrap_or_default();
        let placed = actions.iter().find_map(|action| match action {
            Action::Launch { attempt, placement, .. } if attempt.job == job => Some(placement),
            _ => None,
        });
        if let Some(placement) = placed {
            let devices: Vec<String> = placement.devices.iter().map(|granted| granted.device.to_string()).collect();
            let place = if devices.is_empty() { "without a GPU".to_owned() } else { format!("on {}", devices.join(", ")) };
            let text = format!("{} would start now {place}; the manager is {launches_nothing} and starts no jobs", scheduler.label(job));
            return Ok(self.worded(|words| Why::new(explanation, words)).with_summary(text));
        }
        explanation = would.explain(job).map_err(|error| refused(&error))?;
        let why = self.worded(|words| Why::new(explanation, words));
        let remark = format!("The manager is {launches_nothing} and starts no jobs.");
        Ok(Why { summary: format!("{}. {remark}", why.summary), text: format!("{}\n{remark}", why.text), ..why })
    }
}
