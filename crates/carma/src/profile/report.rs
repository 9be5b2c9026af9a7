//! The gain of sharing, and its cost for each job.

use std::io::Write;

use anyhow::Result;

use super::plan::{Kind, Run};
use super::results::{Outcome, Results};
use carma_format::clock;
use carma_format::{left, right, write_table};

/// Writes a table of all runs.
pub(super) fn write(results: &Results, output: &mut impl Write) -> Result<()> {
    let alone = results.alone();
    let row = |(run, outcome): (&Run, &Outcome)| {
        let own: Option<Vec<f64>> = run.jobs.iter().map(|job| alone.get(job).copied()).collect();
        let [time, slowdown, gain] = match (outcome, own) {
            (Outcome::Failed { reason }, _) => ["-".to_owned(), reason.clone(), "-".to_owned()],
            (Outcome::Took { all, .. }, _) if run.kind == Kind::SoloRun => [clock(*all), String::new(), String::new()],
            (Outcome::Took { all, .. }, None) => [clock(*all), "-".to_owned(), "-".to_owned()],
            (Outcome::Took { all, seconds, .. }, Some(own)) => {
                let mut slowdowns: Vec<String> = seconds.iter().zip(&own).map(|(took, own)| format!("{:.2}", took / own)).collect();
                slowdowns.dedup();
                [clock(*all), slowdowns.join(" "), format!("{:.2}", own.iter().sum::<f64>() / all)]
            }
        };
        let mode = if run.kind == Kind::SoloRun { String::new() } else { run.mode.to_string() };
        [run.jobs_text(), mode, time, gain, slowdown]
    };
    let columns = [left("RUN", 42), left("MODE", 7), right("TIME", 9), right("GAIN", 6), left("SLOWDOWN", usize::MAX)];
    Ok(write_table(columns, &results.iter().map(row).collect::<Vec<_>>(), output)?)
}

#[cfg(test)]
mod tests {
    use super::super::plan::Mode;
    use super::*;

    #[test]
    fn gains_are_relative_to_running_in_sequence() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(folder.path(), false).unwrap();
        let mut keep = |kind, jobs: &[&str], seconds: &[f64], all| {
            let run = Run { kind, mode: Mode::Streams, jobs: jobs.iter().map(|job| (*job).to_owned()).collect() };
            results.keep(run, Outcome::Took { seconds: seconds.to_vec(), all, measured: None }).unwrap();
        };
        keep(Kind::SoloRun, &["resnet50_imagenet_bs64"], &[100.0], 100.0);
        keep(Kind::SoloRun, &["bert"], &[50.0], 50.0);
        keep(Kind::Pair, &["bert", "resnet50_imagenet_bs64"], &[75.0, 120.0], 120.0);
        keep(Kind::Copies, &["bert"; 3], &[80.0, 80.0, 80.0], 156.4);
        let run = Run { kind: Kind::Copies, mode: Mode::Mps, jobs: vec!["bert".to_owned(); 4] };
        results.keep(run, Outcome::Failed { reason: "bert failed: exit status: 1".to_owned() }).unwrap();
        let mut table = Vec::new();
        write(&results, &mut table).unwrap();
        insta::assert_snapshot!(String::from_utf8(table).unwrap(), @r"
        RUN                           MODE    TIME GAIN SLOWDOWN
        resnet50_imagenet_bs64 alone          1:40
        bert alone                            0:50
        bert + resnet50_imagenet_bs64 streams 2:00 1.25 1.50 1.20
        3 x bert                      streams 2:36 0.96 1.60
        4 x bert                      mps        -    - bert failed: exit status: 1
        ");
    }
}
