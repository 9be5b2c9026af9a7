//! `carma sbatch`.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use carma_testing::need;
use carma_testing::slurm::{Cluster, Options};

/// A training script that needs this many shards and fails with PyTorch's error if it has fewer.
fn training(shards: u32) -> String {
    format!(
        "#!/bin/bash\n#SBATCH --time=10\n#SBATCH --cpus-per-task=2\n\
         echo \"attempt ${{SLURM_RESTART_COUNT:-0}} of $SLURM_JOB_ID: $SLURM_SHARDS_ON_NODE shards, $*\"\n\
         if [ \"$SLURM_SHARDS_ON_NODE\" -lt {shards} ]; then\n  \
           echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.49 GiB' >&2\n  \
           exit 9\nfi\necho trained\n"
    )
}

/// A cluster whose requeued jobs start soon, with a folder for scripts and output.
struct Site {
    cluster: Cluster,
    desk: PathBuf,
}

impl Site {
    fn of(cluster: Cluster, files: &[(&str, &str)]) -> Self {
        let desk = cluster.folder().join("desk");
        fs::create_dir(&desk).unwrap();
        for (name, text) in files {
            fs::write(desk.join(name), text).unwrap();
        }
        Self { cluster, desk }
    }

    fn sbatch(&self, arguments: &[&str]) -> Output {
        let mut command = self.cluster.command(env!("CARGO_BIN_EXE_carma"));
        // Ignore earlier runs of the user who runs the tests.
        command.arg("sbatch").args(arguments).current_dir(&self.desk).env("XDG_STATE_HOME", &self.desk);
        command.output().unwrap()
    }

    /// Submits a job, and answers its number, which is all that is printed.
    fn submit(&self, arguments: &[&str]) -> u32 {
        let output = self.sbatch(arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        let id = printed.strip_prefix("Submitted batch job ").and_then(|rest| rest.trim().parse().ok());
        id.unwrap_or_else(|| panic!("{printed}{}", String::from_utf8_lossy(&output.stderr)))
    }

    fn output_of(&self, job: u32) -> String {
        fs::read_to_string(self.desk.join(format!("slurm-{job}.out"))).unwrap_or_default()
    }

    /// Waits for the end of a job: its state, exit code and shards.
    fn end(&self, job: u32) -> (String, String, String) {
        self.cluster.wait_for(|cluster| ["COMPLETED", "FAILED", "CANCELLED"].contains(&cluster.state(job).as_str()));
        let shown = self.cluster.lines("scontrol", ["show", "job", &job.to_string()]).join(" ");
        let value = |key: &str| shown.split_whitespace().find_map(|word| word.strip_prefix(key)).unwrap_or_default().to_owned();
        (self.cluster.state(job), value("ExitCode="), value("TresPerNode=gres:"))
    }

    /// What a command prints on both outputs.
    fn told(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.sbatch(arguments);
        let code = status.code().unwrap();
        format!(
            "$ carma sbatch {}\n{}{}exit code {code}\n\n",
            arguments.join(" "),
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        )
    }
}

#[test]
fn an_out_of_memory_job_is_requeued_with_more_shards() {
    let options = Options { requeue_wait: 5, ..Options::default() };
    let cluster = need!(Cluster::start(&options));
    let large = training(100);
    let fails = "#!/bin/sh\necho 'ValueError: no such data' >&2\nexit 3\n";
    let waits = "#!/bin/bash\ntrap 'echo USR1; exit 4' USR1\necho ready\nwhile true; do sleep 0.1; done\n";
    let site = Site::of(cluster, &[("train.sh", &training(13)), ("large.sh", &large), ("fails.sh", fails), ("waits.sh", waits)]);

    let [trains, too_large] =
        [&["--gpu-mem", "10GiB", "train.sh", "a", "b c"][..], &["--gpu-mem", "2GiB", "--oom-retries", "1", "large.sh"]]
            .map(|words| site.submit(words));
    let [other, signalled] = [&["--gpu-mem", "1GiB", "fails.sh"][..], &["--gpu-mem", "1GiB", "waits.sh"]].map(|words| site.submit(words));
    site.cluster.wait_for(|_| site.output_of(signalled).contains("ready"));
    // Slurm sends it to the batch process alone.
    site.cluster.output("scancel", ["--batch", "--signal=USR1", &signalled.to_string()]);

    assert_eq!(site.end(trains), ("COMPLETED".to_owned(), "0:0".to_owned(), "shard:13".to_owned()));
    let output = site.output_of(trains);
    for line in [
        format!("attempt 0 of {trains}: 11 shards, a b c\n"),
        "[carma: attempt 1 ran out of GPU memory with 11 shards (11.0 GiB): GPU memory ran out".to_owned(),
        format!("[carma: job {trains} goes back into the queue with 13 shards (13.0 GiB), retry 1 of 3]\n"),
        format!("attempt 1 of {trains}: 13 shards, a b c\ntrained\n"),
    ] {
        assert!(output.contains(&line), "{line:?} is not in:\n{output}");
    }

    assert_eq!(site.end(too_large), ("FAILED".to_owned(), "9:0".to_owned(), "shard:5".to_owned()), "bounded retries");
    assert!(
        site.output_of(too_large).ends_with("[carma: the limit of restarts is reached (--oom-retries 1): it fails now]\n"),
        "{}",
        site.output_of(too_large)
    );
    assert_eq!(site.end(other), ("FAILED".to_owned(), "3:0".to_owned(), "shard:2".to_owned()));
    assert_eq!(site.output_of(other), "ValueError: no such data\n", "another failure is the user's");
    assert_eq!(site.end(signalled).1, "4:0");
    assert_eq!(site.output_of(signalled), "ready\nUSR1\n");
}

#[test]
fn a_job_in_a_control_group_is_requeued_too() {
    let options = Options { requeue_wait: 5, control_groups: true, ..Options::default() };
    let site = Site::of(need!(Cluster::start(&options)), &[]);
    let command = "srun sh -c \"test $SLURM_SHARDS_ON_NODE -ge 3 || { echo 'RuntimeError: CUDA error: out of memory'; exit 1; }\"";
    let job = site.submit(&["--gpu-mem", "1GiB", "--wrap", command]);
    assert_eq!(site.end(job), ("COMPLETED".to_owned(), "0:0".to_owned(), "shard:4".to_owned()), "{}", site.output_of(job));
}

#[test]
fn a_job_does_not_stay_held_when_the_controller_hangs() {
    let options = Options { requeue_wait: 5, ..Options::default() }.line("MessageTimeout=2");
    let script = "#!/bin/bash\ntest $SLURM_SHARDS_ON_NODE -ge 3 && exit 0\necho ready\nuntil test -e go; do sleep 0.1; done\n\
                  echo 'RuntimeError: CUDA error: out of memory'\nexit 1\n";
    let site = Site::of(need!(Cluster::start(&options)), &[("train.sh", script)]);
    let job = site.submit(&["--gpu-mem", "1GiB", "train.sh"]);
    site.cluster.wait_for(|_| site.output_of(job).contains("ready"));
    // Slurm's client gives up after two seconds, but the controller acts on its order later.
    site.cluster.pause_controller();
    fs::write(site.desk.join("go"), "").unwrap();
    site.cluster.wait_for(|_| site.output_of(job).contains("goes back into the queue"));
    std::thread::sleep(std::time::Duration::from_secs(3));
    site.cluster.continue_controller();
    assert_eq!(site.end(job), ("COMPLETED".to_owned(), "0:0".to_owned(), "shard:4".to_owned()), "{}", site.output_of(job));
}

#[test]
fn a_dry_run_says_what_is_added_and_kept() {
    let site = Site::of(
        need!(Cluster::start(&Options::default())),
        &[
            ("train.sh", "#!/bin/bash\n#SBATCH --time=10\npython train.py\n"),
            ("kept.sh", "#!/bin/bash\n#SBATCH --gres=gpu:2\n#SBATCH --mem=8G\npython train.py\n"),
            ("ours.sh", "#!/bin/bash\n#CARMA --mem 6GiB --host-mem 3GiB\n#SBATCH --gres=shard:5 --no-requeue\npython train.py\n"),
            ("text", "python train.py\n"),
        ],
    );
    let told: String = [
        &["--dry-run", "--gpu-mem", "12GiB", "-p", "gpu", "train.sh", "a b"][..],
        &["--dry-run", "train.sh"],
        &["--dry-run", "--gpu-mem", "50GiB", "train.sh"],
        &["--dry-run", "kept.sh"],
        &["--dry-run", "ours.sh"],
        &["-J", "x", "--gpu-memory", "16GiB", "--gpu-mem", "6GiB", "--dry-run", "--wrap", "python train.py"],
        &[],
        &["missing.sh"],
        &["text"],
        &["--gpu-mem", "lots", "train.sh"],
        &["-p", "missing", "train.sh"],
        &["--estimate", "dry-run", "--wrap", "echo"],
    ]
    .map(|arguments| site.told(arguments))
    .concat();
    insta::assert_snapshot!("sbatch-dry-run", told);
    let refused = site.sbatch(&["--no-such-option=1", "kept.sh"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("unrecognized option '--no-such-option=1'"));
    assert!(site.cluster.squeue(["-t", "all"]).is_empty(), "nothing was submitted");
}

#[test]
fn sites_without_shards_and_with_unknown_gpus() {
    let plain = Site::of(
        need!(Cluster::start(&Options { shards: 0, ..Options::default() })),
        &[("train.sh", "#!/bin/sh\necho $CUDA_VISIBLE_DEVICES\n")],
    );
    let told = plain.told(&["--dry-run", "--gpu-mem", "12GiB", "train.sh"]);
    let job = plain.submit(&["--gpu-mem", "12GiB", "train.sh"]);
    assert_eq!(plain.end(job), ("COMPLETED".to_owned(), "0:0".to_owned(), "gpu:1".to_owned()));
    assert_eq!(plain.output_of(job), "0\n");
    drop(plain);
    let odd =
        Site::of(need!(Cluster::start(&Options { gpu_type: "fast".to_owned(), ..Options::default() })), &[("train.sh", "#!/bin/sh\n")]);
    insta::assert_snapshot!("sbatch-sites", told + &odd.told(&["--dry-run", "--gpu-mem", "12GiB", "train.sh"]));
}

#[test]
fn without_slurm_the_error_says_so() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_carma")).args(["sbatch", "x.sh"]).env("PATH", "/nonexistent").output().unwrap();
    let message = "carma: sbatch is not in PATH: this machine has no Slurm, or its module is not loaded\n";
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(1), message));
}

#[test]
fn its_help_separates_the_options() {
    insta::assert_snapshot!("sbatch-help", crate::stdout(&["sbatch", "--help"]));
}
