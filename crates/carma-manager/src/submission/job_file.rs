//! Job files: TOML with the flags' names for keys, and `command` for what to run.
//!
//! ```toml
//! gpus = 1
//! env = { OMP_NUM_THREADS = "4" }
//!
//! [[job]]
//! name = "small"
//! command = ["python", "train.py", "--lr", "{lr}"]
//! param = { lr = [0.1, 0.01] }
//!
//! [[job]]
//! name = "large"
//! gpus = 2
//! mem = "40GiB"
//! command = ["python", "train.py"]
//! ```

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{Place, Problem, SubmissionError};
use super::form::{ParsedJob, ParsedSource};
use super::key::{Key, OptionValue};
use crate::request::JobCommand;

type Value<'a> = Spanned<DeValue<'a>>;

/// Reads the jobs. Options above the first job apply to all jobs.
pub(super) fn read(name: &str, text: &str) -> Result<ParsedSource, SubmissionError> {
    let file = File { name, line_ends: text.match_indices('\n').map(|(end, _)| end).collect() };
    let table = DeTable::parse(text).map_err(|error| {
        let place = file.place(error.span().map_or(0, |span| span.start), None);
        Problem::Refused(format!("not TOML: {}", error.message().replace('\n', "; "))).at(place)
    })?;
    let table = table.get_ref();
    let shared = file.job(table.iter().filter(|(key, _)| key.get_ref() != "job"), 0)?;
    let Some((key, jobs)) = table.iter().find(|(key, _)| key.get_ref() == "job") else {
        return Ok(ParsedSource { jobs: vec![shared], notes: Vec::new() });
    };
    let invalid = || Problem::Refused("give each job as a table: [[job]]".to_owned()).at(file.place(key.span().start, Some("job")));
    let tables = jobs.get_ref().as_array().ok_or_else(invalid)?;
    let jobs = tables.iter().map(|job| {
        let own = file.job(job.get_ref().as_table().ok_or_else(invalid)?.iter(), job.span().start)?;
        let place = if own.command.is_none() && shared.command.is_some() { shared.place.clone() } else { own.place };
        Ok(ParsedJob {
            command: own.command.or_else(|| shared.command.clone()),
            place,
            layers: [shared.layers.clone(), own.layers].concat(),
        })
    });
    Ok(ParsedSource { jobs: jobs.collect::<Result<_, SubmissionError>>()?, notes: Vec::new() })
}

struct File<'a> {
    name: &'a str,
    line_ends: Vec<usize>,
}

impl File<'_> {
    fn place(&self, byte: usize, key: Option<&str>) -> Place {
        let before = self.line_ends.partition_point(|&end| end < byte);
        Place { file: Some(self.name.to_owned()), line: Some(before + 1), key: key.map(str::to_owned) }
    }

    /// The command and the options of a table that begins at a byte.
    fn job<'b>(
        &self,
        table: impl Iterator<Item = (&'b Spanned<DeString<'b>>, &'b Value<'b>)>,
        byte: usize,
    ) -> Result<ParsedJob, SubmissionError> {
        let mut command = None;
        let mut command_place = self.place(byte, None);
        let mut layer = Vec::new();
        for (name, value) in table {
            let name_at = name.span().start;
            let name: &str = name.get_ref();
            let place = self.place(name_at, Some(name));
            let fail = |problem: Problem| problem.at(place.clone());
            if name == "command" {
                command = Some(JobCommand::Program(words(value).map_err(fail)?));
                command_place = place;
                continue;
            }
            let key = Key::find(&name.replace('_', "-")).map_err(|problem| problem.at(self.place(name_at, None)))?;
            let values = values(key, value.get_ref()).map_err(fail)?;
            layer.extend(values.into_iter().map(|value| OptionValue { key, value, place: place.clone() }));
        }
        Ok(ParsedJob { command, place: command_place, layers: vec![layer] })
    }
}

fn words(value: &Value<'_>) -> Result<Vec<String>, Problem> {
    let words = value.get_ref().as_array().map(|words| words.iter().map(|word| word.get_ref().as_str().map(str::to_owned)));
    let words = words.and_then(Iterator::collect::<Option<Vec<_>>>);
    words.ok_or_else(|| Problem::Refused("give the words of the command, as in [\"python\", \"train.py\"]".to_owned()))
}

/// A value as flags would have it, each of several by itself.
fn values(key: &Key, value: &DeValue<'_>) -> Result<Vec<String>, Problem> {
    match value {
        DeValue::Boolean(on) if key.value.is_none() => Ok(if *on { vec![String::new()] } else { Vec::new() }),
        _ if key.value.is_none() => Err(Problem::Refused("give true or false".to_owned())),
        DeValue::Table(table) if key.several => {
            table.iter().map(|(name, value)| Ok(format!("{}={}", name.get_ref(), listed(value.get_ref())?))).collect()
        }
        DeValue::Array(values) if key.several => values.iter().map(|value| plain(value.get_ref())).collect(),
        value => Ok(vec![listed(value)?]),
    }
}

/// A plain value, or several with commas between them, none of which has one itself.
fn listed(value: &DeValue<'_>) -> Result<String, Problem> {
    let DeValue::Array(values) = value else { return plain(value) };
    let values = values.iter().map(|value| plain(value.get_ref())).collect::<Result<Vec<_>, _>>()?;
    match values.iter().find(|value| value.contains(',')) {
        Some(value) => Err(Problem::invalid(value, "a value for a list: it contains a comma")),
        None => Ok(values.join(",")),
    }
}

fn plain(value: &DeValue<'_>) -> Result<String, Problem> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            whole.map(|whole| whole.to_string()).map_err(|_| Problem::invalid(number.as_str(), "a finite number"))
        }
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Datetime(moment) => Ok(moment.to_string()),
        DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err(Problem::Refused(format!("give a text or a number, not {}", value.type_str())))
        }
    }
}
