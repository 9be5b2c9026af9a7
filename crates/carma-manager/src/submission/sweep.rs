//! Parameters of a sweep: `lr=0.1,0.01` and `seed=1..5`, their cross product, and where they go in a command.

use std::collections::BTreeMap;

use super::array::{MAX_MEMBERS, too_many};
use super::environment::check_variable;
use super::error::Problem;
use super::values::digits;
use crate::request::Parameter;

impl Parameter {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let expected = "a parameter and its values, as in lr=0.1,0.01 or seed=1..5";
        let (name, written) = text.split_once('=').ok_or_else(|| Problem::invalid(text, expected))?;
        check_variable(name)?;
        let mut values: Vec<String> = Vec::new();
        for value in written.split(',') {
            match value.split_once("..").and_then(|(first, last)| Some((digits(first)?, digits(last)?))) {
                _ if value.is_empty() || value.contains('\0') => return Err(Problem::invalid(text, expected)),
                Some((first, last)) if first <= last => {
                    values.extend((first..=last).take(MAX_MEMBERS + 1).map(|number| number.to_string()));
                }
                Some(_) => return Err(Problem::invalid(value, "an ascending range such as 1..5, which includes 5")),
                None => values.push(value.to_owned()),
            }
            too_many(values.len())?;
        }
        let parameter = Self { name: name.to_owned(), values };
        parameter.check().map(|()| parameter)
    }

    /// Checks that it has a name, and values that differ.
    fn check(&self) -> Result<(), Problem> {
        let Self { name, values } = self;
        check_variable(name)?;
        if values.is_empty() || values.iter().any(|value| value.is_empty() || value.contains('\0')) {
            return Err(Problem::Refused(format!("{name} needs values that are not empty")));
        }
        let mut sorted: Vec<&str> = values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Problem::Refused(format!("{name} has the value {:?} twice", pair[0]))),
            None => Ok(()),
        }
    }
}

/// The variable that holds a parameter's value in a job's environment.
pub(super) fn variable(name: &str) -> String {
    format!("CARMA_PARAM_{}", name.to_ascii_uppercase())
}

/// Checks each parameter, and that no two share a variable.
pub(super) fn check(parameters: &[Parameter]) -> Result<(), Problem> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for parameter in parameters {
        parameter.check()?;
        let (name, variable) = (&parameter.name, variable(&parameter.name));
        if let Some(alike) = seen.get(&variable) {
            return Err(Problem::Refused(format!("{name} and {alike} have the same variable {variable}: rename one")));
        }
        seen.insert(variable, name);
    }
    Ok(())
}

/// Checks that every placeholder of a command is a parameter. `${name}` is a shell's.
pub(super) fn check_placeholders(words: &[String], parameters: &[Parameter]) -> Result<(), Problem> {
    let known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    let unknown = words.iter().flat_map(|word| placeholders(word)).find(|name| !known(name));
    unknown.map_or(Ok(()), |name| {
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        Err(Problem::Refused(format!("{{{name}}} is not a parameter: give --param {name}=VALUES, or use {{{}}}", names.join("} or {"))))
    })
}

/// The names in braces of a word.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(move |(at, _)| {
        let (name, _) = word[at + 1..].split_once('}')?;
        let is_shells = word[..at].ends_with('$');
        (!is_shells && check_variable(name).is_ok()).then_some(name)
    })
}

/// The first parameter that a command does not use: neither in braces nor by its variable, which files named in the command may read.
pub(super) fn unused<'a>(words: &[String], parameters: &'a [Parameter], reads: impl Fn(&str, &str) -> bool) -> Option<&'a Parameter> {
    parameters.iter().find(|parameter| {
        let (placeholder, variable) = (format!("{{{}}}", parameter.name), variable(&parameter.name));
        !words.iter().any(|word| word.contains(&placeholder) || word.contains(&variable) || reads(word, &variable))
    })
}

/// The number of combinations.
pub(super) fn count(parameters: &[Parameter]) -> Result<usize, Problem> {
    let jobs = parameters.iter().try_fold(1_usize, |jobs, parameter| jobs.checked_mul(parameter.values.len()));
    let jobs = jobs.unwrap_or(usize::MAX);
    too_many(jobs).map(|()| jobs)
}

/// The values of the combination at this place; the last parameter changes fastest.
pub(super) fn values_at(parameters: &[Parameter], mut place: usize) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for Parameter { name, values: all } in parameters.iter().rev() {
        values.insert(name.clone(), all[place % all.len()].clone());
        place /= all.len();
    }
    values
}

/// How many bytes values add to a job at most: filled into these words, and in the environment and the labels.
pub(super) fn growth(words: &[String], parameters: &[Parameter]) -> usize {
    const COPIES: usize = 3;
    let longest = parameters.iter().flat_map(|parameter| &parameter.values).map(String::len).max().unwrap_or(0);
    let places = words.iter().map(|word| word.matches('{').count()).sum::<usize>() + COPIES * parameters.len();
    places.saturating_mul(longest)
}

/// A word of a command with `{name}` replaced by its value. Braces in values and other braces stay.
pub(super) fn filled_in(word: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        filled.push_str(before);
        let known = from[1..].split_once('}').and_then(|(name, after)| Some((values.get(name)?, after)));
        let (piece, after) = known.map_or(("{", &from[1..]), |(value, after)| (value.as_str(), after));
        filled.push_str(piece);
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{BTreeMap, Parameter, check_placeholders, count, filled_in, unused, values_at};

    #[test]
    fn values_are_lists_and_ranges() {
        let values = |text: &str| Parameter::parse(text).unwrap().values;
        assert_eq!(values("lr=0.1,0.01"), ["0.1", "0.01"]);
        assert_eq!(values("seed=1..3,9"), ["1", "2", "3", "9"]);
        assert_eq!(values("path=../data,$(id)"), ["../data", "$(id)"]);
        for wrong in ["", "lr", "lr=", "lr=1,", "lr=1,1", "l-r=1", "1=1", "=1", "seed=5..1", "seed=0..100000", "seed=0..9999999999"] {
            assert!(Parameter::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn placeholders_must_be_parameters_and_parameters_must_be_used() {
        let parameters = ["lr=1,2", "seed=1..3"].map(|text| Parameter::parse(text).unwrap());
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |text: &str| check_placeholders(&words(text), &parameters).map_err(|problem| problem.to_string());
        assert_eq!(check("train --lr={lr} --seed {seed} ${HOME} {\"a\":1} {} {"), Ok(()));
        assert_eq!(check("train {rl}").unwrap_err(), "{rl} is not a parameter: give --param rl=VALUES, or use {lr} or {seed}");
        let first = |text: &str| unused(&words(text), &parameters, |word, _| word == "reads.py").map(|unused| unused.name.clone());
        assert_eq!(first("train {lr}").as_deref(), Some("seed"));
        assert_eq!(first("train {lr} $CARMA_PARAM_SEED"), None);
        assert_eq!(first("python reads.py"), None);
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        let values = BTreeMap::from([("lr", "{seed}"), ("seed", "7")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(filled_in("--x={lr},{seed}", &values), "--x={seed},7");
        assert_eq!(filled_in("{\"a\": {other}, {{seed}} {", &values), "{\"a\": {other}, {7} {");
    }

    proptest! {
        #[test]
        fn the_product_has_every_combination_once_in_order(sizes in prop::collection::vec(1_usize..6, 1..4)) {
            let parameters: Vec<Parameter> = sizes.iter().enumerate().map(|(place, size)| Parameter::parse(&format!("p{place}=1..{size}")).unwrap()).collect();
            let jobs = count(&parameters).unwrap();
            prop_assert_eq!(jobs, sizes.iter().product::<usize>());
            let all: Vec<_> = (0..jobs).map(|place| values_at(&parameters, place)).collect();
            // The names sort as they stand, and so the jobs do.
            prop_assert!(all.is_sorted());
            prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), jobs);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", word in "\\PC*") {
            if let Ok(parameter) = Parameter::parse(&text) {
                prop_assert!(!parameter.values.is_empty());
            }
            prop_assert_eq!(filled_in(&word, &BTreeMap::new()), word);
        }
    }
}
