//! The results of runs: appended line by line, and written as the tables that `carma calibrate` reads.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::plan::{Kind, Mode, Run};
use carma_format::clock;

/// The GPU measurements of a job that ran alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) peak_mib: u64,
    pub(super) gpu_util_pct: Option<f64>,
    pub(super) smact: Option<f64>,
    pub(super) smocc: Option<f64>,
    pub(super) drama: Option<f64>,
    pub(super) power_w: Option<f64>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// All jobs succeeded.
    Took {
        /// How long each took.
        seconds: Vec<f64>,
        /// From the first start to the last end.
        all: f64,
        /// Only for a job that ran alone.
        measured: Option<Measured>,
    },
    /// One job failed.
    Failed {
        /// The job and its failure.
        reason: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Took { seconds, .. } => f.write_str(&seconds.iter().map(|seconds| clock(*seconds)).collect::<Vec<_>>().join(", ")),
            Self::Failed { reason } => f.write_str(reason),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    run: Run,
    outcome: Outcome,
}

/// The results so far.
#[derive(Debug)]
pub(super) struct Results {
    folder: PathBuf,
    lines: Vec<Line>,
    file: File,
}

impl Results {
    /// Opens the results of a folder: empty, or with earlier ones to resume.
    pub(super) fn open(folder: &Path, resume: bool) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join("results.jsonl");
        let before = fs::read_to_string(&path).unwrap_or_default();
        if !before.is_empty() && !resume {
            bail!("{} contains results: continue with --resume, or give another folder with --output", folder.display());
        }
        // The last line may be incomplete after a crash.
        let whole = before.rfind('\n').map_or("", |end| &before[..=end]);
        let lines = whole.lines().map(serde_json::from_str).collect::<Result<Vec<Line>, _>>();
        let lines = lines.with_context(|| format!("{} cannot be read", path.display()))?;
        let mut file = File::options().create(true).append(true).open(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.set_len(whole.len() as u64)?;
        file.flush()?;
        Ok(Self { folder: folder.to_owned(), lines, file })
    }

    pub(super) fn has(&self, run: &Run) -> bool {
        self.lines.iter().any(|line| line.run == *run)
    }

    pub(super) fn keep(&mut self, run: Run, outcome: Outcome) -> Result<()> {
        let line = Line { run, outcome };
        writeln!(self.file, "{}", serde_json::to_string(&line)?)?;
        self.file.sync_data()?;
        self.lines.push(line);
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Run, &Outcome)> {
        self.lines.iter().map(|line| (&line.run, &line.outcome))
    }

    /// Duration of each job alone.
    pub(super) fn alone(&self) -> BTreeMap<String, f64> {
        let alone = self.iter().filter(|(run, _)| run.kind == Kind::SoloRun);
        alone.filter_map(|(run, outcome)| Some((run.jobs[0].clone(), outcome.seconds()?[0]))).collect()
    }

    /// Writes `solo.csv`, and for each mode its pairs and crowds.
    pub(super) fn write_tables(&self) -> Result<()> {
        let alone = self.alone();
        let mut solo =
            Table::new(&["workload", "gpu_rank", "end_to_end_s", "peak_mib", "gpu_util_pct", "smact", "smocc", "drama", "power_w"]);
        let mut pairs: BTreeMap<Mode, Table> = BTreeMap::new();
        let mut crowds: BTreeMap<Mode, Table> = BTreeMap::new();
        for (run, outcome) in self.iter() {
            let Outcome::Took { seconds, measured, .. } = outcome else { continue };
            let Some(own) = run.jobs.iter().map(|job| alone.get(job).copied()).collect::<Option<Vec<f64>>>() else { continue };
            match (run.kind, measured) {
                (Kind::SoloRun, Some(measured)) => {
                    let some = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
                    let shares = [measured.gpu_util_pct, measured.smact, measured.smocc, measured.drama, measured.power_w].map(some);
                    let head = [run.jobs[0].clone(), "0".to_owned(), format!("{:.3}", own[0]), measured.peak_mib.to_string()];
                    solo.rows.push(head.into_iter().chain(shares).collect());
                }
                (Kind::SoloRun, None) => {}
                (Kind::Pair, _) => {
                    let table =
                        pairs.entry(run.mode).or_insert_with(|| Table::new(&["a", "b", "solo_a_s", "solo_b_s", "pair_a_s", "pair_b_s"]));
                    let times = own.iter().chain(seconds).map(|seconds| format!("{seconds:.3}"));
                    table.rows.push(run.jobs.iter().cloned().chain(times).collect());
                }
                (Kind::Copies, _) => {
                    let table = crowds.entry(run.mode).or_insert_with(|| Table::new(&["trial", "jobs", "solo_s", "mean_slowdown"]));
                    let slowdown = seconds.iter().zip(&own).map(|(took, own)| took / own).sum::<f64>() / own.len() as f64;
                    let times: Vec<String> = own.iter().map(|own| format!("{own:.3}")).collect();
                    table.rows.push(vec![run.to_string(), run.jobs.join(";"), times.join(";"), format!("{slowdown:.4}")]);
                }
            }
        }
        let of_modes = |name: &'static str, tables: BTreeMap<Mode, Table>| {
            tables.into_iter().map(move |(mode, table)| (format!("{name}-{mode}.csv"), table))
        };
        for (name, table) in [("solo.csv".to_owned(), solo)].into_iter().chain(of_modes("pairs", pairs)).chain(of_modes("crowds", crowds)) {
            let path = self.folder.join(name);
            table.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
            eprintln!("carma: wrote {}", path.display());
        }
        Ok(())
    }
}

struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    const fn new(head: &'static [&'static str]) -> Self {
        Self { head, rows: Vec::new() }
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut writer = csv::Writer::from_path(path)?;
        writer.write_record(self.head)?;
        self.rows.iter().try_for_each(|row| writer.write_record(row))?;
        Ok(writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_outlive_an_interruption_and_a_line_that_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let run = |job: &str| Run { kind: Kind::SoloRun, mode: Mode::Streams, jobs: vec![job.to_owned()] };
        let took = Outcome::Took { seconds: vec![10.0], all: 10.0, measured: None };
        let mut results = Results::open(folder.path(), false).unwrap();
        results.keep(run("a"), took.clone()).unwrap();
        results.keep(run("b"), Outcome::Failed { reason: "b exited with 1".to_owned() }).unwrap();
        drop(results);
        let file = folder.path().join("results.jsonl");
        let kept = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{kept}{{\"run\":{{\"ki")).unwrap();
        assert!(Results::open(folder.path(), false).unwrap_err().to_string().contains("--resume"));
        let results = Results::open(folder.path(), true).unwrap();
        assert!(results.has(&run("a")) && results.has(&run("b")) && !results.has(&run("c")));
        assert_eq!(results.alone(), BTreeMap::from([("a".to_owned(), 10.0)]));
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    }
}
