//! CARMA's `.rad` task files: one value per line.

use carma_core::{MiB, Seconds};

use super::super::draft::{self, Draft};
use super::super::input::Lines;
use super::super::{TraceError, TraceJob, TraceProblem};
use super::script::stem;
use super::{Format, Kind};

/// A task file, by its extension or its second line.
pub(super) const FORMAT: Format = Format {
    name: ".rad task files",
    kind: Kind::Lines {
        is: |head| {
            let script = head.interpreter || head.has_extension("sh");
            head.has_extension("rad") || (!script && head.first.starts_with("conda activate"))
        },
        read,
    },
};

/// Placeholder for an unknown need.
const UNKNOWN: f64 = 40_000.0;

/// Maximum lines of a task file.
const MOST_LINES: usize = 12;

/// A task as its file describes it.
///
/// ```
/// use carma_sim::trace::RadTask;
/// let text = "# ResNet\nconda activate torch\npython train.py\nresnet50.model\nimagenet\n64\ntraining\n1\n7118\n40000\n";
/// let task = RadTask::parse("resnet2.rad", text).unwrap();
/// assert_eq!((task.batch, task.gpus), (64, 1));
/// assert_eq!(task.needs.measured, Some(carma_core::MiB(7118)));
/// assert_eq!(task.needs.horus, None);
/// let wrong = RadTask::parse("a.rad", "# a\nsource activate torch\n").unwrap_err();
/// assert!(wrong.to_string().starts_with("a.rad, line 2: environment "));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RadTask {
    /// The first line, a free comment.
    pub comment: String,
    /// The conda environment.
    pub environment: String,
    /// The training command.
    pub command: String,
    /// The file with the model's summary.
    pub summary: String,
    /// The dataset.
    pub dataset: String,
    /// Batch size.
    pub batch: u32,
    /// The mode, as the file names it.
    pub mode: String,
    /// Requested GPUs, at least 1.
    pub gpus: u32,
    /// Its memory need, by source.
    pub needs: RadNeeds,
}

/// A task's memory per GPU, measured and estimated; the file has 40000 for unknown values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RadNeeds {
    /// Measured value.
    pub measured: Option<MiB>,
    /// Estimate of Horus.
    pub horus: Option<MiB>,
    /// Estimate of `FakeTensor`.
    pub fake_tensor: Option<MiB>,
    /// Estimate of `GPUMemNet`.
    pub gpu_mem_net: Option<MiB>,
}

impl RadTask {
    /// Parses a task file; the name is used in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let lines: Vec<&str> = text.lines().take(MOST_LINES + 1).collect();
        Self::from_lines(&lines).map_err(|(line, problem)| problem.at(name, line))
    }

    fn from_lines(lines: &[&str]) -> Result<Self, (u64, TraceProblem)> {
        let text = |place: usize, what: &str| {
            let line = lines.get(place).map(|line| line.trim()).filter(|line| !line.is_empty());
            line.ok_or_else(|| (place as u64 + 1, TraceProblem::Missing(what.to_owned())))
        };
        let number = |place: usize, what: &str| {
            let count = draft::count(what, text(place, what)?).map_err(|problem| (place as u64 + 1, problem))?;
            if count == 0 { Err((place as u64 + 1, TraceProblem::invalid(what, "0", "1 or more"))) } else { Ok(count) }
        };
        let need = |place: usize| match lines.get(place).map(|line| line.trim()).filter(|line| !line.is_empty()) {
            None => Ok(None),
            Some(line) => need(line).map_err(|problem| (place as u64 + 1, problem)),
        };
        if let Some(beyond) = lines.get(MOST_LINES).filter(|line| !line.trim().is_empty()) {
            return Err((MOST_LINES as u64 + 1, TraceProblem::invalid("line", beyond, "expected: a task file has 12 lines at most")));
        }
        let activate = text(1, "environment")?;
        let environment = activate.strip_prefix("conda activate ").map(str::trim).filter(|name| !name.is_empty());
        let environment = environment.ok_or_else(|| (2, TraceProblem::invalid("environment", activate, "`conda activate NAME`")))?;
        Ok(Self {
            comment: lines.first().map(|line| line.trim_start_matches('#').trim().to_owned()).unwrap_or_default(),
            environment: environment.to_owned(),
            command: text(2, "command")?.to_owned(),
            summary: text(3, "model summary")?.to_owned(),
            dataset: text(4, "dataset")?.to_owned(),
            batch: number(5, "batch size")?,
            mode: text(6, "mode")?.to_owned(),
            gpus: number(7, "number of GPUs")?,
            needs: RadNeeds { measured: need(8)?, horus: need(9)?, fake_tensor: need(10)?, gpu_mem_net: need(11)? },
        })
    }
}

/// A need in MiB, rounded up.
fn need(text: &str) -> Result<Option<MiB>, TraceProblem> {
    let number = text.parse().ok().filter(|number: &f64| (0.0..1.0e9).contains(number));
    let number = number.ok_or_else(|| TraceProblem::invalid("memory", text, "a number of MiB of 0 or more"))?;
    // Compared as whole numbers, since files contain both 40000 and 40000.0.
    Ok(if number.round() as u64 == UNKNOWN as u64 { None } else { Some(MiB(number.ceil() as u64)) })
}

/// A trace of one job. Its workload comes from the file name, or else from the model's summary.
fn read(name: &str, lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let mut all: Vec<String> = Vec::new();
    while all.len() <= MOST_LINES
        && let Some(line) = lines.next()?
    {
        all.push(line.to_owned());
    }
    let borrowed: Vec<&str> = all.iter().map(String::as_str).collect();
    let task = RadTask::from_lines(&borrowed).map_err(|(line, problem)| {
        lines.point_at(line);
        problem
    })?;
    let file = stem(name);
    let by_summary = || draft.catalogue().find(&stem(&task.summary));
    let workload = draft.catalogue().find(&file).or_else(by_summary).map_or_else(|| draft.workload(&file), Ok)?;
    draft.add(TraceJob { name: file, submitted: Seconds::ZERO, gpus: task.gpus, workload: Some(workload), duration: None, owner: None })
}
