//! The standard mix of 90 jobs on three pilots, and as exclusive jobs of Slurm on the same nodes: `make compare-slurm`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use carma_core::MiB;
use carma_manager::api::Submission;
use carma_manager::client::{Address, Client};
use carma_manager::request::{JobCommand, JobRequest};
use carma_sim::trace::ReadLimits;
use carma_sim::{Catalogue, Trace};
use carma_testing::need;
use carma_testing::slurm::Options;

use super::lab::{Lab, program};

/// GPUs of each of the three nodes.
const GPUS: usize = 4;
/// A run that takes longer has hung.
const LONGEST: Duration = Duration::from_secs(1800);

/// A job of the mix.
struct MixJob {
    /// When it is submitted, in emulated seconds after the first.
    after: f64,
    gpus: u32,
    /// The measured peak of its workload, which it declares.
    memory: MiB,
    /// Its training process.
    command: String,
}

fn mix() -> Vec<MixJob> {
    let catalogue = Catalogue::shipped();
    let file = std::process::Command::new(program()).args(["trace", "generate"]).output().unwrap();
    let trace = Trace::parse("mix.csv", file.stdout.as_slice(), &catalogue, &ReadLimits::default()).unwrap();
    let first = trace.jobs[0].submitted.get();
    let job = |(seed, job): (usize, &carma_sim::TraceJob)| {
        let workload = catalogue.get(job.workload.unwrap());
        let seconds = job.duration.map(|seconds| format!(" --seconds {}", seconds.get())).unwrap_or_default();
        MixJob {
            after: job.submitted.get() - first,
            gpus: job.gpus,
            memory: workload.ranks.iter().map(|rank| rank.peak).max().unwrap(),
            command: format!("{} emu train --workload {} --seed {seed}{seconds}", program().display(), workload.name),
        }
    };
    trace.jobs.iter().enumerate().map(job).collect()
}

/// The real times of all starts and ends, noted by the jobs themselves and by the pilots.
struct Journal(PathBuf);

impl Journal {
    fn new(lab: &Lab, name: &str) -> Self {
        let folder = lab.cluster.folder().join(name);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// A script that notes when a command begins, and when it has succeeded.
    fn noted(&self, number: usize, command: &str) -> String {
        let note = |what: &str| format!("date +%s.%N >>{}/{what}-{number}", self.0.display());
        format!("{}; {command} && {}", note("start"), note("end"))
    }

    fn times(&self, what: &str) -> BTreeMap<String, f64> {
        let files = fs::read_dir(&self.0).unwrap().flatten();
        let named = files.filter_map(|file| Some((file.file_name().to_str()?.strip_prefix(what)?.to_owned(), file.path())));
        named.filter_map(|(name, path)| Some((name, fs::read_to_string(path).ok()?.lines().last()?.parse().ok()?))).collect()
    }
}

/// Results in emulated time.
struct Figures {
    makespan: f64,
    completion: f64,
    gpu_hours: f64,
}

/// Submits all jobs at their times, and waits until all have succeeded.
fn run(jobs: &[MixJob], journal: &Journal, speed: f64, mut submit: impl FnMut(usize, &MixJob)) -> (f64, f64) {
    let begin = Instant::now();
    let mut submitted = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        thread::sleep(Duration::from_secs_f64(job.after / speed).saturating_sub(begin.elapsed()));
        submitted.push(now());
        submit(number, job);
    }
    while journal.times("end-").len() < jobs.len() {
        assert!(begin.elapsed() < LONGEST, "{} of {} jobs ended", journal.times("end-").len(), jobs.len());
        thread::sleep(Duration::from_millis(200));
    }
    let ends = journal.times("end-");
    let took = |number: usize| ends[&number.to_string()] - submitted[number];
    let last = ends.values().fold(0.0, |last: f64, end| last.max(*end));
    let mean = (0..jobs.len()).map(took).sum::<f64>() / jobs.len() as f64;
    ((last - submitted[0]) * speed, mean * speed)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn on_pilots(lab: &Lab, jobs: &[MixJob], speed: f64) -> Figures {
    let (journal, pilots) = (Journal::new(lab, "by-carma"), Journal::new(lab, "pilots"));
    let folder = lab.cluster.folder().display();
    let note = |what: &str| format!("date +%s.%N >>{}/{what}-$SLURM_JOB_ID", pilots.0.display());
    let setup = format!("{}; export CARMA_EMU={folder}/emu-$SLURMD_NODENAME", note("start"));
    // The default of five minutes, in the time of the jobs.
    let patience = format!("{:.0}s", (300.0 / speed).max(1.0));
    let pool = ["pool", "add", "slurm", "gpu", "--gpus", "4", "--mem", "8GiB", "--max", "3", "--patience", &patience];
    lab.text(&[&pool[..], &["--setup", &setup, "--teardown", &note("end")]].concat());
    let mut client = Client::at(Address::Socket(lab.state().join("carma.sock"))).unwrap();
    let (makespan, completion) = run(jobs, &journal, speed, |number, job| {
        let words = ["bash", "-c", &journal.noted(number, &job.command)].map(str::to_owned).to_vec();
        let mut request = JobRequest::new(JobCommand::Program(words), "/tmp");
        request.environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        (request.resources.gpus, request.resources.memory) = (job.gpus, Some(job.memory));
        client.submit(&Submission::from(request)).unwrap();
    });
    lab.text(&["pool", "remove", "gpu"]);
    lab.until("all pilots end", || pilots.times("end-").len() == pilots.times("start-").len() && lab.pilots().is_empty());
    let (starts, ends) = (pilots.times("start-"), pilots.times("end-"));
    let held: f64 = starts.iter().map(|(pilot, start)| ends[pilot] - start).sum();
    eprintln!("{} pilots of {GPUS} GPUs", starts.len());
    Figures { makespan, completion, gpu_hours: held * speed * GPUS as f64 / 3600.0 }
}

fn as_slurm_jobs(lab: &Lab, jobs: &[MixJob], speed: f64) -> Figures {
    let journal = Journal::new(lab, "by-slurm");
    let emulated = format!("export CARMA_EMU={}/emu-$SLURMD_NODENAME", lab.cluster.folder().display());
    let (makespan, completion) = run(jobs, &journal, speed, |number, job| {
        let script = format!("{emulated}; {}", journal.noted(number, &job.command));
        lab.cluster.sbatch([&format!("--gres=gpu:{}", job.gpus), "--mem=512M", "--wrap", &script]);
    });
    let (starts, ends) = (journal.times("start-"), journal.times("end-"));
    let held = |(number, job): (usize, &MixJob)| (ends[&number.to_string()] - starts[&number.to_string()]) * f64::from(job.gpus);
    let held: f64 = jobs.iter().enumerate().map(held).sum();
    Figures { makespan, completion, gpu_hours: held * speed / 3600.0 }
}

/// How long Slurm takes to start a job on free GPUs, in real seconds.
fn delay(lab: &Lab, name: &str) -> f64 {
    let journal = Journal::new(lab, name);
    let begin = now();
    lab.cluster.sbatch(["--gres=gpu:1", "--mem=512M", "--wrap", &journal.noted(0, "true")]);
    lab.until("a job starts", || journal.times("end-").len() == 1);
    journal.times("start-")["0"] - begin
}

#[test]
#[ignore = "takes long: make compare-slurm"]
fn the_mix_on_pilots_against_exclusive_slurm_jobs() {
    let speed: f64 = super::campaign::number("CARMA_SPEED", 60.0);
    let options = Options { shards: 0, ..Options::of(3, GPUS) };
    let lab = need!(Lab::at_speed(&options, speed));
    let jobs = mix();
    let delays = ["delay-1", "delay-2", "delay-3"].map(|name| delay(&lab, name));
    let (slowest, fastest) = (delays.iter().fold(0.0, |a: f64, b| a.max(*b)), delays.iter().fold(f64::MAX, |a: f64, b| a.min(*b)));
    eprintln!(
        "{} jobs on 3 nodes of {GPUS} A100-40GB; emulated time runs {speed} times faster. Slurm starts a job on free GPUs after {fastest:.2} to \
         {slowest:.2} s: {:.0} to {:.0} emulated seconds",
        jobs.len(),
        fastest * speed,
        slowest * speed
    );
    let slurm = as_slurm_jobs(&lab, &jobs, speed);
    let carma = on_pilots(&lab, &jobs, speed);
    eprintln!("{:<28} {:>12} {:>12} {:>8}", "", "Slurm", "CARMA", "ratio");
    let row = |name: &str, slurm: f64, carma: f64| eprintln!("{name:<28} {slurm:>12.2} {carma:>12.2} {:>8.3}", carma / slurm);
    row("makespan (h)", slurm.makespan / 3600.0, carma.makespan / 3600.0);
    row("mean completion time (min)", slurm.completion / 60.0, carma.completion / 60.0);
    row("GPU-hours billed", slurm.gpu_hours, carma.gpu_hours);
}
