//! The configuration files of a cluster.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;
use super::ports::Ports;

/// Character devices that every container has: GPUs of clusters without root.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx"];

/// Writes `slurm.conf`, `gres.conf` and `cgroup.conf`, and returns the path of the first.
pub(super) fn write(folder: &Path, options: &Options, nodes: &[String], ports: &Ports) -> io::Result<PathBuf> {
    for part in ["etc", "state", "spool", "log"] {
        fs::create_dir(folder.join(part))?;
    }
    let etc = folder.join("etc");
    let conf = etc.join("slurm.conf");
    fs::write(&conf, slurm_conf(folder, options, nodes, ports))?;
    fs::write(etc.join("gres.conf"), gres_conf(folder, options, nodes)?)?;
    let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { "v2" } else { "v1" };
    let constrain = if options.control_groups { "yes" } else { "no" };
    let cgroup = format!(
        "CgroupPlugin=cgroup/{version}\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace={constrain}\nConstrainDevices={constrain}\n"
    );
    fs::write(etc.join("cgroup.conf"), cgroup)?;
    Ok(conf)
}

fn slurm_conf(folder: &Path, options: &Options, nodes: &[String], ports: &Ports) -> String {
    let folder = folder.display();
    let (host, user) = (host(), user());
    let (tracking, tasks) = if options.control_groups { ("proctrack/cgroup", "task/cgroup") } else { ("proctrack/linuxproc", "task/none") };
    let settings = [
        ("ClusterName", "test".to_owned()),
        ("SlurmctldHost", format!("{host}(127.0.0.1)")),
        ("SlurmctldPort", ports.controller.to_string()),
        ("SlurmUser", user.clone()),
        ("SlurmdUser", user),
        ("AuthType", "auth/munge".to_owned()),
        ("CredType", "cred/munge".to_owned()),
        ("AuthInfo", format!("socket={folder}/munge.sock,cred_expire={}", options.requeue_wait)),
        ("StateSaveLocation", format!("{folder}/state")),
        ("SlurmdSpoolDir", format!("{folder}/spool/%n")),
        ("SlurmctldPidFile", format!("{folder}/slurmctld.pid")),
        ("SlurmdPidFile", format!("{folder}/slurmd-%n.pid")),
        ("SlurmctldLogFile", format!("{folder}/log/slurmctld.log")),
        ("SlurmdLogFile", format!("{folder}/log/slurmd-%n.log")),
        ("ProctrackType", tracking.to_owned()),
        ("TaskPlugin", tasks.to_owned()),
        ("JobAcctGatherType", "jobacct_gather/none".to_owned()),
        ("AccountingStorageType", "accounting_storage/none".to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SelectTypeParameters", "CR_Core_Memory".to_owned()),
        ("SchedulerType", "sched/backfill".to_owned()),
        // A job starts within a second.
        ("SchedulerParameters", "batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0".to_owned()),
        ("KillWait", "2".to_owned()),
        ("MpiDefault", "none".to_owned()),
        ("ReturnToService", "2".to_owned()),
        ("SlurmdTimeout", "30".to_owned()),
        // Nodes have the cores and memory that their lines say, whatever the machine has.
        ("SlurmdParameters", "config_overrides".to_owned()),
        ("GresTypes", if options.shards > 0 { "gpu,shard" } else { "gpu" }.to_owned()),
        ("DefMemPerCPU", "512".to_owned()),
    ];
    let replaced = |key: &str| options.lines.iter().any(|line| line.split_once('=').is_some_and(|(own, _)| own.trim() == key));
    let mut text = String::new();
    for (key, value) in settings.iter().filter(|(key, _)| !replaced(key)) {
        let _ = writeln!(text, "{key}={value}");
    }
    let mut gres = format!("gpu:{}:{}", options.gpu_type, options.gpus);
    if options.shards > 0 {
        let _ = write!(gres, ",shard:{}", options.shards * options.gpus);
    }
    for (index, node) in nodes.iter().enumerate() {
        let port = ports.node(index);
        let _ = writeln!(
            text,
            "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 \
             ThreadsPerCore=1 RealMemory=16000 Gres={gres} State=UNKNOWN"
        );
    }
    if !replaced("PartitionName") {
        text += "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
    }
    for line in &options.lines {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn gres_conf(folder: &Path, options: &Options, nodes: &[String]) -> io::Result<String> {
    let mut text = "AutoDetect=off\n".to_owned();
    for (index, node) in nodes.iter().enumerate() {
        let devices = devices(folder, index, options.gpus)?.join(",");
        let _ = writeln!(text, "NodeName={node} Name=gpu Type={} File={devices}", options.gpu_type);
        if options.shards > 0 {
            let _ = writeln!(text, "NodeName={node} Name=shard Count={}", options.shards * options.gpus);
        }
    }
    Ok(text)
}

/// The device files of a node: of its own if this user may make some, otherwise devices that exist anyway.
fn devices(folder: &Path, node: usize, gpus: usize) -> io::Result<Vec<String>> {
    let own = (0..gpus).map(|gpu| folder.join(format!("node{node}-nvidia{gpu}"))).collect::<Vec<_>>();
    let make = |(gpu, path): (usize, &PathBuf)| {
        let minor = (node * gpus + gpu).to_string();
        let made =
            Command::new("mknod").args(["-m", "666"]).arg(path).args(["c", "195", &minor]).stderr(std::process::Stdio::null()).status();
        made.is_ok_and(|status| status.success())
    };
    if crate::root().is_ok() && own.iter().enumerate().all(make) {
        return Ok(own.iter().map(|path| path.display().to_string()).collect());
    }
    let found: Vec<String> = DEVICES.into_iter().take(gpus).map(str::to_owned).collect();
    if found.len() == gpus { Ok(found) } else { Err(io::Error::other(format!("without root a node has at most {} GPUs", DEVICES.len()))) }
}

fn user() -> String {
    let name = Command::new("id").arg("-un").output().unwrap_or_else(|error| panic!("cannot run id: {error}"));
    String::from_utf8_lossy(&name.stdout).trim().to_owned()
}

/// The name that Slurm compares: without the domain.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or(&name).to_owned()
}
