//! A load of many kinds of jobs. Each keeps its own record of its attempts.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use carma_core::{Condition, JobId, Outcome};
use carma_manager::api::{JobAction, Submission};
use carma_manager::client::{Address, Client, ClientError};
use carma_manager::request::{After, JobRequest};
use fastrand::Rng;

use super::lab::{program, until};
use super::up::{ManagerProcess, one};

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Succeeds,
    Fails,
    Lasts,
    Trains,
    OutOfMemory,
    Array,
}

/// A request to the manager.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The job numbers in the answer; unset without an answer.
    pub(super) acknowledged: Option<Vec<JobId>>,
    /// Whether a cancellation was requested, and acknowledged.
    pub(super) cancelled: Option<bool>,
}

/// Requests of several users to a manager that crashes and restarts.
pub(super) struct Load {
    address: Address,
    template: JobRequest,
    records: PathBuf,
    asked: Mutex<Vec<Asked>>,
}

impl Load {
    pub(super) fn new(up: &ManagerProcess) -> Self {
        let records = up.folder().join("records");
        fs::create_dir(&records).unwrap();
        Self { address: up.address(), template: up.shell_job(""), records, asked: Mutex::default() }
    }

    pub(super) fn into_asked(self) -> Vec<Asked> {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job of this kind. Its record survives its end, and a kernel lock shows whether it runs twice.
    pub(super) fn job(&self, name: &str, kind: Kind) -> Submission {
        let carma = program().display();
        let body = match kind {
            Kind::Succeeds | Kind::Array => "sleep 0.05".to_owned(),
            Kind::Fails => "sh -c 'sleep 0.02; exit 7'".to_owned(),
            Kind::Lasts => "sleep 0.6".to_owned(),
            Kind::Trains => format!("{carma} emu train --workload efficientnet_cifar100_bs128_20e --memory 4GiB --seconds 10"),
            Kind::OutOfMemory => format!("{carma} emu train --workload efficientnet_cifar100_bs128_20e --memory 60GiB --seconds 10"),
        };
        let mut job = self.recorded(name, &body);
        job.resources.gpus = u32::from(matches!(kind, Kind::Trains | Kind::OutOfMemory));
        let array = (kind == Kind::Array).then(|| vec![1, 2, 3]);
        Submission { array, ..one(job) }
    }

    /// A job that records its start and its end.
    pub(super) fn recorded(&self, name: &str, body: &str) -> JobRequest {
        let script = format!(
            "record=\"{}/{name}${{CARMA_ARRAY_INDEX:+.$CARMA_ARRAY_INDEX}}\"\n\
             exec 9>>\"$record.lock\"; flock -n 9 || echo twice >>\"$record\"\n\
             echo \"start $CARMA_ATTEMPT $$\" >>\"$record\"\n{body} 9>&-\ncode=$?\n\
             echo \"end $CARMA_ATTEMPT $code\" >>\"$record\"; exit $code",
            self.records.display()
        );
        let mut job = self.template.clone();
        let carma_manager::request::JobCommand::Program(words) = &mut job.command else { panic!() };
        words[2] = script;
        job.name = Some(name.to_owned());
        job
    }

    /// Submits this many jobs, each until it is acknowledged, and cancels some.
    pub(super) fn submit(&self, person: u64, turns: &Mutex<Receiver<()>>) {
        let mut random = Rng::with_seed(person);
        let mut earlier: Option<JobId> = None;
        let mut number = 0;
        loop {
            let Ok(()) = turns.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
            loop {
                number += 1;
                thread::sleep(Duration::from_millis(random.u64(0..80)));
                let mut asked = self.ask(format!("job-{person}-{number}"), &mut random, earlier);
                if let Some([job, ..]) = asked.acknowledged.as_deref() {
                    earlier = Some(*job);
                    if random.u32(0..6) == 0 {
                        thread::sleep(Duration::from_millis(random.u64(0..150)));
                        asked.cancelled = Some(self.cancel(*job));
                    }
                }
                let acknowledged = asked.acknowledged.is_some();
                self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
                if acknowledged {
                    break;
                }
            }
        }
    }

    fn ask(&self, name: String, random: &mut Rng, earlier: Option<JobId>) -> Asked {
        let kind = match random.u32(0..20) {
            0..6 => Kind::Succeeds,
            6..9 => Kind::Fails,
            9..13 => Kind::Lasts,
            13..17 => Kind::Trains,
            17 => Kind::OutOfMemory,
            _ => Kind::Array,
        };
        let mut submit = self.job(&name, kind);
        if let Some(job) = earlier.filter(|_| random.u32(0..4) == 0) {
            let condition = if random.bool() { Condition::Ok } else { Condition::Any };
            submit.job.schedule.after.push(After { job: job.0.to_string(), condition });
        }
        let acknowledged = match self.client().submit(&submit) {
            Ok(submitted) => Some(submitted.jobs),
            Err(ClientError::Refused(problem)) => {
                // Its dependency has failed meanwhile, or the manager starts or stops.
                assert!([409, 503].contains(&problem.kind.status()), "{problem}");
                None
            }
            Err(error) => {
                assert!(error.is_absence(), "{error}");
                None
            }
        };
        Asked { name, kind, acknowledged, cancelled: None }
    }

    fn cancel(&self, job: JobId) -> bool {
        let acted = self.client().act(&job.0.to_string(), &JobAction::Cancel);
        acted.is_ok_and(|acted| acted.done.contains(&job))
    }

    fn client(&self) -> Client {
        until(|| Client::at(self.address.clone()).ok())
    }

    pub(super) fn record(&self, name: &str) -> Record {
        Record::read(&self.records.join(name))
    }
}

/// The record of a job.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Started attempts, with their processes.
    pub(super) starts: Vec<(u32, u32)>,
    /// Attempts that ended by themselves, with the code.
    pub(super) ends: Vec<(u32, i32)>,
    /// Whether two ran at once.
    pub(super) twice: bool,
}

impl Record {
    pub(super) fn read(path: &std::path::Path) -> Self {
        let mut record = Self::default();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["start", attempt, pid] => record.starts.push((attempt.parse().unwrap(), pid.parse().unwrap())),
                ["end", attempt, code] => record.ends.push((attempt.parse().unwrap(), code.parse().unwrap())),
                ["twice"] => record.twice = true,
                _ => panic!("{line}"),
            }
        }
        record
    }

    /// Whether an outcome agrees with the job's own record.
    pub(super) fn bears_out(&self, outcome: &Outcome) -> bool {
        let last = self.ends.last().filter(|(attempt, _)| self.starts.last().is_some_and(|(last, _)| last == attempt));
        let ended_with = |code: i32| last.is_some_and(|(_, ended)| *ended == code);
        match outcome {
            Outcome::Succeeded => ended_with(0),
            Outcome::Failed { code } => ended_with(*code),
            Outcome::OutOfMemory => ended_with(1),
            Outcome::DependencyFailed { .. } => self.starts.is_empty(),
            Outcome::Cancelled | Outcome::SupervisorLost => true,
            _ => false,
        }
    }
}
