//! A steady load of short jobs. Each keeps a record of its attempts outside of CARMA, and notices when it runs twice at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use carma_core::{JobId, MiB};
use carma_manager::api::Submission;
use carma_manager::client::{Address, Client, ClientError};
use carma_manager::request::{JobCommand, JobRequest};
use fastrand::Rng;

use super::super::lab::{Lab, program};

/// Jobs that wait or run: the submitter waits above this.
const AT_ONCE: u64 = 20;

/// Kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Succeeds,
    Fails,
    TwoGpus,
    Checkpoints,
    Trains,
}

/// The exit code of jobs that fail.
pub(super) const CODE: i32 = 7;

/// A submission.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Its number, if the manager answered.
    pub(super) acknowledged: Option<JobId>,
}

pub(super) struct Load {
    address: Address,
    records: PathBuf,
    asked: Mutex<Vec<Asked>>,
}

impl Load {
    pub(super) fn new(lab: &Lab) -> Self {
        let records = records(lab);
        fs::create_dir(&records).unwrap();
        Self { address: Address::Socket(lab.state().join("carma.sock")), records, asked: Mutex::default() }
    }

    pub(super) fn into_asked(self) -> Vec<Asked> {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits jobs until it is stopped. Managers start and end meanwhile.
    pub(super) fn submit_until(&self, ends: &AtomicBool, seed: u64) {
        let mut random = Rng::with_seed(seed ^ 0x10ad);
        let mut number = 0;
        while !ends.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(random.u64(100..700)));
            let Ok(mut client) = Client::at(self.address.clone()) else { continue };
            let Ok(status) = client.status() else { continue };
            if status.jobs.waiting + status.jobs.running >= AT_ONCE {
                continue;
            }
            number += 1;
            let asked = self.ask(format!("job-{number}"), &mut random, &mut client);
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        }
    }

    fn ask(&self, name: String, random: &mut Rng, client: &mut Client) -> Asked {
        let kind = match random.u32(0..20) {
            0..8 => Kind::Succeeds,
            8..11 => Kind::Fails,
            11..14 => Kind::TwoGpus,
            14..17 => Kind::Checkpoints,
            _ => Kind::Trains,
        };
        let acknowledged = match client.submit(&self.job(&name, kind, random)) {
            Ok(submitted) => Some(submitted.jobs[0]),
            Err(ClientError::Refused(problem)) => {
                // The manager starts or stops.
                assert_eq!(problem.kind.status(), 503, "{problem}");
                None
            }
            Err(error) => {
                assert!(error.is_absence(), "{error}");
                None
            }
        };
        Asked { name, kind, acknowledged }
    }

    fn job(&self, name: &str, kind: Kind, random: &mut Rng) -> Submission {
        let seconds = random.f64() * 3.0 + 1.0;
        let sleeps = format!("sleep {seconds:.2}");
        let body = match kind {
            Kind::Succeeds | Kind::TwoGpus => sleeps,
            Kind::Fails => format!("{sleeps}; code={CODE}"),
            // Steps of a quarter of a second. Told to end, it has its checkpoint already.
            Kind::Checkpoints => "trap 'exit 143' TERM USR1; file=$CARMA_CHECKPOINT_DIR/step; step=$(cat $file 2>/dev/null || echo 0)\n\
                 while [ $step -lt 12 ]; do sleep 0.25 & wait $!; step=$((step + 1)); echo $step >$file.new; mv $file.new $file; done"
                .to_owned(),
            Kind::Trains => format!(
                "{} emu train --workload efficientnet_cifar100_bs128_20e --memory 4GiB --seconds {seconds:.1} || code=$?",
                program().display()
            ),
        };
        // Children keep the lock: it is free when nothing of an attempt is left.
        let script = format!(
            "record={records}/{name}; exec 9>>$record.lock; flock -n 9 || {{ echo twice $CARMA_ATTEMPT >>$record; exit 99; }}\n\
             echo start $CARMA_ATTEMPT $$ >>$record; code=0\n{body}\necho end $CARMA_ATTEMPT $code >>$record; exit $code",
            records = self.records.display()
        );
        let words = ["bash", "-c", &script].map(str::to_owned).to_vec();
        let mut job = JobRequest::new(JobCommand::Program(words), &self.records);
        job.environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        job.name = Some(name.to_owned());
        job.resources.gpus = if kind == Kind::TwoGpus { 2 } else { 1 };
        job.resources.memory = Some(MiB(6144));
        job.may_checkpoint = kind == Kind::Checkpoints;
        Submission::from(job)
    }
}

/// The folder of all records.
pub(super) fn records(lab: &Lab) -> PathBuf {
    lab.cluster.folder().join("records")
}

/// The record of a job.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Started attempts.
    pub(super) starts: Vec<u32>,
    /// Attempts that ended by themselves, with the code.
    pub(super) ends: Vec<(u32, i32)>,
    /// Whether two ran at once.
    pub(super) twice: bool,
}

impl Record {
    pub(super) fn read(path: &Path) -> Self {
        let mut record = Self::default();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            match *line.split(' ').collect::<Vec<_>>() {
                ["start", attempt, _] => record.starts.push(attempt.parse().unwrap()),
                ["end", attempt, code] => record.ends.push((attempt.parse().unwrap(), code.parse().unwrap())),
                ["twice", _] => record.twice = true,
                _ => panic!("{line}"),
            }
        }
        record
    }
}
