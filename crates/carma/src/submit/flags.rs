//! The options of a job, as flags.

use carma_manager::submission::{KEYS, Key, OptionValue, Place};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// The values of the flags, key by key.
#[derive(Debug)]
pub(crate) struct Flags(pub(crate) Vec<OptionValue>);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(key: &'static Key) -> Arg {
    let flag = Arg::new(key.name).long(key.name).help(key.help).help_heading(key.topic).visible_aliases(key.aliases);
    let flag = key.short.into_iter().fold(flag, Arg::short);
    match key.value {
        None => flag.action(ArgAction::SetTrue),
        Some(value) => {
            let action = if key.several { ArgAction::Append } else { ArgAction::Set };
            flag.action(action).value_name(value).allow_negative_numbers(true)
        }
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let values = KEYS.iter().flat_map(|key| {
            let given: Vec<String> = match key.value {
                None => matches.get_flag(key.name).then(String::new).into_iter().collect(),
                Some(_) => matches.get_many(key.name).into_iter().flatten().cloned().collect(),
            };
            let place = Place { key: Some(format!("--{}", key.name)), ..Place::default() };
            given.into_iter().map(move |value| OptionValue { key, value, place: place.clone() })
        });
        Ok(Self(values.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
