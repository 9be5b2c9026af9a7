//! Groups of jobs that should take about as long, from the same command line to anything of the same user.

use std::fmt;
use std::path::Path;

use crate::history::Signature;

/// How alike the runs of a group are, most alike first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Similarity {
    /// The same command line.
    Command,
    /// The same apart from seeds, names and folders.
    Settings,
    /// The same apart from numbers.
    Numbers,
    /// The same model on the same data.
    Model,
    /// The same program.
    Program,
    /// The same user.
    User,
}

impl Similarity {
    /// All, most alike first.
    pub const ALL: [Self; 6] = [Self::Command, Self::Settings, Self::Numbers, Self::Model, Self::Program, Self::User];

    /// How much runs of such a group differ, before any is seen: the standard deviation of the logarithm of their lengths.
    pub(super) const fn usual_spread(self) -> f64 {
        match self {
            Self::Command => 0.12,
            Self::Settings => 0.2,
            Self::Numbers => 0.5,
            Self::Model => 0.7,
            Self::Program => 0.9,
            Self::User => 1.3,
        }
    }

    /// Whether a run of twice the epochs is twice as long.
    pub(super) const fn scales(self) -> bool {
        !matches!(self, Self::User)
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Command => "of this command",
            Self::Settings => "of this command with another seed or name",
            Self::Numbers => "of this command with other numbers",
            Self::Model => "of this model",
            Self::Program => "of this program",
            Self::User => "of this user",
        })
    }
}

/// What is known of a job before it runs that says how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its command line, and everything else that tells it from others.
    pub words: &'a [String],
    /// Where it runs.
    pub directory: &'a str,
    /// The description of its model, if it has one.
    pub model: Option<&'a str>,
    /// The number of GPUs.
    pub gpus: u64,
    /// Its user.
    pub user: u32,
    /// Runs of other users count too.
    pub shared: bool,
}

/// The groups of a job, and how much work it does in units that its command line names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Groups {
    /// In the order of [`Similarity::ALL`]; unset: it has no such group.
    pub(super) keys: [Option<Signature>; 6],
    /// Epochs or steps, if it says so.
    pub(super) units: Option<f64>,
}

/// Options whose values do not change how long a job takes.
const INCIDENTAL: [&str; 14] =
    ["seed", "out", "log", "name", "run", "tag", "project", "port", "save", "resume", "checkpoint", "ckpt", "wandb", "note"];
/// Options that say how much work there is, in units of one another's kind.
const WORK: [&str; 11] =
    ["epochs", "numtrainepochs", "maxepochs", "nepochs", "numepochs", "maxsteps", "steps", "numsteps", "iterations", "maxiters", "niter"];
/// Options that name the model.
const MODEL: [&str; 7] = ["model", "arch", "architecture", "modelname", "modelnameorpath", "backbone", "workload"];
/// Options that name the data.
const DATA: [&str; 5] = ["data", "dataset", "datasetname", "datapath", "task"];

/// An option of a command line with its value, or a word without.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    option: Option<&'a str>,
    value: &'a str,
}

impl<'a> Word<'a> {
    /// `--option value`, `--option=value`, `option=value` or `value`.
    fn read(words: &'a [String]) -> Vec<Self> {
        let mut read = Vec::with_capacity(words.len());
        let mut option = None;
        for word in words {
            let dashed = word.starts_with('-') && number(word).is_none();
            match word.split_once('=') {
                Some((name, value)) if dashed || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-+".contains(&byte)) => {
                    read.push(Self { option: Some(name), value });
                    option = None;
                }
                _ if dashed => {
                    read.push(Self { option: Some(word), value: "" });
                    option = Some(word.as_str());
                }
                _ => read.push(Self { option: option.take(), value: word }),
            }
        }
        read
    }

    /// The last part of the option's name, without dashes and underscores, in small letters: `--trainer.max_epochs` is `maxepochs`.
    fn name(&self) -> String {
        let letters = self.option.unwrap_or_default().rsplit('.').next().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    }

    fn is_incidental(&self) -> bool {
        let name = self.name();
        self.option.is_some()
            && !MODEL.contains(&name.as_str())
            && !DATA.contains(&name.as_str())
            && INCIDENTAL.iter().any(|part| name.contains(part))
    }

    fn work(&self) -> Option<f64> {
        number(self.value).filter(|units| *units > 0.0 && WORK.contains(&self.name().as_str()))
    }
}

fn number(word: &str) -> Option<f64> {
    word.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// How many epochs a command line asks for, if it says so.
pub fn epochs(words: &[String]) -> Option<f64> {
    Word::read(words).iter().filter(|word| word.name().contains("epoch")).find_map(Word::work)
}

impl Groups {
    /// The groups of a job.
    ///
    /// ```
    /// use carma_estimate::durations::{Groups, Request, Similarity};
    /// let groups = |line: &str| {
    ///     let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    ///     let request = Request { words: &words, directory: "/home/ada", model: None, gpus: 1, user: 1, shared: false };
    ///     Groups::of(&request)
    /// };
    /// let [one, other] = ["python train.py --seed 1 --lr 0.1", "python train.py --seed 2 --lr 0.1"].map(groups);
    /// assert_eq!(one.closest_in_common(&other), Some(Similarity::Settings));
    /// ```
    pub fn of(request: &Request<'_>) -> Self {
        let words = Word::read(request.words);
        let key = |similarity: Similarity, parts: Vec<String>| {
            let parts: Vec<String> = std::iter::once(format!("{similarity:?}")).chain(parts).collect();
            let key = Signature::of_command(&parts, request.directory.as_ref()).on_gpus(request.gpus);
            if request.shared { key } else { key.of_user(request.user) }
        };
        let option = |word: &Word<'_>| word.option.unwrap_or_default().to_owned();
        let without_incidents = |word: &Word<'_>| {
            let hidden = word.is_incidental() || word.work().is_some();
            [option(word), if hidden { String::new() } else { word.value.to_owned() }]
        };
        let without_numbers = |word: &Word<'_>| {
            let [option, value] = without_incidents(word);
            [option, if number(&value).is_some() { String::new() } else { value }]
        };
        let named = |names: &[&str]| {
            words.iter().find(|word| !word.value.is_empty() && names.contains(&word.name().as_str())).map(|word| word.value)
        };
        let model =
            request.model.or_else(|| named(&MODEL)).map(|model| vec![model.to_owned(), named(&DATA).unwrap_or_default().to_owned()]);
        // Up to the script, or up to the first option.
        let script =
            words.iter().position(|word| word.option.is_none() && Path::new(word.value).extension().is_some_and(|kind| kind == "py"));
        let program = script.map_or_else(|| words.iter().take_while(|word| word.option.is_none()).count(), |script| script + 1);
        let program = words.iter().take(program).map(|word| word.value.to_owned()).collect();
        let user = Signature::of_command(&[], "".as_ref()).on_gpus(request.gpus).of_user(request.user);
        let keys = [
            Some(key(Similarity::Command, request.words.to_vec())),
            Some(key(Similarity::Settings, words.iter().flat_map(without_incidents).collect())),
            Some(key(Similarity::Numbers, words.iter().flat_map(without_numbers).collect())),
            model.map(|model| key(Similarity::Model, model)),
            Some(key(Similarity::Program, program)),
            Some(user),
        ];
        Self { keys, units: words.iter().find_map(Word::work) }
    }

    /// The likeness of two jobs; unset: they have nothing in common.
    pub fn closest_in_common(&self, other: &Self) -> Option<Similarity> {
        let common = self.keys.iter().zip(&other.keys).position(|(one, other)| one.is_some() && one == other);
        common.map(|place| Similarity::ALL[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(line: &str) -> Groups {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Groups::of(&Request { words: &words, directory: "/home/ada", model: None, gpus: 1, user: 1, shared: false })
    }

    #[test]
    fn similarity_depends_on_the_differences_of_command_lines() {
        let line = "python train.py --model resnet50 --epochs 10 --seed 1 --lr=0.1 -v";
        for (other, likeness) in [
            (line, Similarity::Command),
            ("python train.py --model resnet50 --epochs 20 --seed 2 --lr=0.1 -v", Similarity::Settings),
            ("python train.py --model resnet50 --epochs 10 --seed 1 --lr=0.2 -v", Similarity::Numbers),
            ("torchrun other.py --arch resnet50", Similarity::Model),
            ("python train.py --model vgg16", Similarity::Program),
            ("sleep 10", Similarity::User),
        ] {
            assert_eq!(groups(line).closest_in_common(&groups(other)), Some(likeness), "{other}");
        }
    }

    #[test]
    fn the_work_is_read_from_the_command_line() {
        for (line, units) in [
            ("python train.py --epochs 10", Some(10.0)),
            ("python train.py --num_train_epochs=3 --lr -1", Some(3.0)),
            ("python train.py trainer.max_steps=500", Some(500.0)),
            ("python train.py max_steps=500", Some(500.0)),
            ("python train.py --epochs all", None),
        ] {
            assert_eq!(groups(line).units, units, "{line}");
        }
    }

    #[test]
    fn users_share_groups_only_where_they_share_the_history() {
        let words = ["python".to_owned(), "train.py".to_owned()];
        let of = |user, shared| Groups::of(&Request { words: &words, directory: "/project", model: None, gpus: 1, user, shared });
        assert_eq!(of(1, false).closest_in_common(&of(2, false)), None);
        assert_eq!(of(1, true).closest_in_common(&of(2, true)), Some(Similarity::Command));
        let (ours, theirs) = (of(1, true).keys[5], of(2, true).keys[5]);
        assert_ne!(ours, theirs, "how long other jobs of a user take says nothing about those of another");
    }
}
