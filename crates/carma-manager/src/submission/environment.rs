//! A job's environment: the caller's, with changes.

use std::collections::BTreeMap;

use super::error::Problem;

/// Changes an environment by `NAME=VALUE`, `NAME` (as the caller has it), `ALL` (of the caller's) or `NONE`.
pub(super) fn change(environment: &mut BTreeMap<String, String>, item: &str, caller: &BTreeMap<String, String>) -> Result<(), Problem> {
    match (item, item.split_once('=')) {
        ("NONE", _) => environment.clear(),
        ("ALL", _) => environment.extend(caller.clone()),
        (_, Some((name, value))) => {
            check_variable(name)?;
            environment.insert(name.to_owned(), value.to_owned());
        }
        (name, None) => {
            check_variable(name)?;
            let value =
                caller.get(name).ok_or_else(|| Problem::Refused(format!("{name} is not set here: set it, or give {name}=VALUE")))?;
            environment.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

/// Checks that every shell accepts the name of a variable.
pub(super) fn check_variable(name: &str) -> Result<(), Problem> {
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if word && name.starts_with(|first: char| !first.is_ascii_digit()) {
        Ok(())
    } else {
        Err(Problem::invalid(name, "a name of letters, digits and _ that does not begin with a digit"))
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, change};

    fn after(items: &[&str]) -> Result<Vec<String>, String> {
        let caller = BTreeMap::from([("HOME", "/home/me"), ("LANG", "C")].map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut environment = caller.clone();
        items.iter().try_for_each(|item| change(&mut environment, item, &caller)).map_err(|problem| problem.to_string())?;
        Ok(environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn the_callers_environment_is_kept_unless_changed() {
        assert_eq!(after(&["A=b=c"]).unwrap(), ["A=b=c", "HOME=/home/me", "LANG=C"]);
        assert_eq!(after(&["NONE", "LANG"]).unwrap(), ["LANG=C"]);
        assert_eq!(after(&["NONE", "LANG=de", "ALL"]).unwrap(), ["HOME=/home/me", "LANG=C"]);
        assert_eq!(after(&["A=$(id)\n;"]).unwrap()[0], "A=$(id)\n;", "data, whatever it says");
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(after(&["MISSING"]).unwrap_err(), "MISSING is not set here: set it, or give MISSING=VALUE");
        for wrong in ["", "=1", "1A=1", "A B=1", "A-B", "Ä=1", "A\n=1"] {
            assert!(after(&[wrong]).is_err(), "{wrong}");
        }
    }
}
