//! The arguments of `nvidia-smi`.

use super::gpu::Gpu;
use super::query::{AppField, Csv, GpuField};
use super::{INVALID_ARGUMENT, Refusal, query, table};

pub(super) const HELP: &str = "\
nvidia-smi [-L] [-i GPU,...] [--query-gpu=FIELDS | --query-compute-apps=FIELDS --format=csv[,noheader][,nounits]]

    It stands in for NVIDIA's program on emulated GPUs. A GPU is named by its number, UUID or PCI bus id.
";

/// The options it has.
pub(super) const KNOWN: &str = "-L, -i, --query-gpu, --query-compute-apps, --format=csv and -h";

/// A command of the program.
#[derive(Debug)]
pub(super) enum Command {
    Help,
    Show(ViewRequest),
}

/// The requested view, and the GPUs; empty: all.
#[derive(Debug)]
pub(super) struct ViewRequest {
    pub(super) view: View,
    pub(super) gpus: Vec<String>,
}

/// The form of the output.
#[derive(Debug)]
pub(super) enum View {
    Table,
    List,
    Gpus(Vec<&'static GpuField>, Csv),
    Apps(Vec<&'static AppField>, Csv),
}

impl View {
    pub(super) fn show(&self, gpus: &[&Gpu]) -> String {
        match self {
            Self::Table => table::table(gpus),
            Self::List => gpus.iter().map(|gpu| gpu.listed()).collect(),
            Self::Gpus(fields, csv) => csv.write(fields, gpus.iter().copied()),
            Self::Apps(fields, csv) => csv.write(fields, gpus.iter().flat_map(|gpu| gpu.apps.iter().map(move |app| (*gpu, app)))),
        }
    }
}

impl Command {
    /// Parses the arguments after the program's name.
    pub(super) fn read(arguments: &[String]) -> Result<Self, Refusal> {
        let (mut gpus, mut format, mut of_gpus, mut of_apps, mut list) = (Vec::new(), None, None, None, false);
        let mut words = arguments.iter().flat_map(|word| match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => vec![option, value],
            _ => vec![word.as_str()],
        });
        while let Some(word) = words.next() {
            let mut value = || words.next().map(str::to_owned).ok_or_else(|| invalid(&format!("Option {word} is missing its value.")));
            match word {
                "-h" | "--help" => return Ok(Self::Help),
                "-L" | "--list-gpus" => list = true,
                "-i" | "--id" => gpus = value()?.split(',').map(|name| name.trim().to_owned()).collect(),
                "--query-gpu" => of_gpus = Some(query::gpu_fields(&value()?)?),
                "--query-compute-apps" => of_apps = Some(query::app_fields(&value()?)?),
                "--format" => format = Some(Csv::read(&value()?)?),
                _ => return Err(Refusal::NotEmulated(word.to_owned())),
            }
        }
        let view = match (list, of_gpus, of_apps, format) {
            (false, None, None, None) => View::Table,
            (true, None, None, None) => View::List,
            (false, Some(fields), None, Some(csv)) => View::Gpus(fields, csv),
            (false, None, Some(fields), Some(csv)) => View::Apps(fields, csv),
            (false, Some(_), None, None) | (false, None, Some(_), None) => {
                return Err(invalid("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help."));
            }
            _ => return Err(invalid("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.")),
        };
        Ok(Self::Show(ViewRequest { view, gpus }))
    }
}

pub(super) fn invalid(message: &str) -> Refusal {
    Refusal::Message(INVALID_ARGUMENT, format!("{message}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        match Command::read(&arguments).unwrap_err() {
            Refusal::Message(2, message) => message,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn errors_equal_those_of_the_real_library() {
        assert_eq!(refused(&["--query-gpu=name,foo", "--format=csv"]), "Field \"foo\" is not a valid field to query.\n\n");
        assert!(refused(&["--query-gpu=name"]).starts_with("\"--format=\" switch is missing."));
        assert!(refused(&["-L", "--query-gpu=name", "--format=csv"]).starts_with("Invalid combination of input arguments."));
        assert!(refused(&["-i"]).starts_with("Option -i is missing its value."));
        assert!(refused(&["--query-gpu=name", "--format=xml"]).contains("xml"));
        assert_eq!(refused(&["topo", "-m"]), "NotEmulated(\"topo\")");
    }
}
