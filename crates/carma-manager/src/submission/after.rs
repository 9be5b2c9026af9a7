//! Dependencies: `12`, `@name:any`, `last`, and Slurm's `afterok:12:13`.

use carma_core::Condition;

use super::check::check_name;
use super::error::Problem;
use crate::request::After;

const EXPECTED: &str = "a job to wait for: give 12, last or @name, optionally with :ok (the default) or :any, or Slurm's afterok:12:13";

/// Parses a list separated by commas.
pub(super) fn after(text: &str) -> Result<Vec<After>, Problem> {
    let lists = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(lists.into_iter().flatten().collect())
}

fn one(text: &str) -> Result<Vec<After>, Problem> {
    let (first, rest) = text.split_once(':').map_or((text, None), |(first, rest)| (first, Some(rest)));
    let condition = |word: &str| match word {
        "ok" | "afterok" => Some(Condition::Ok),
        "any" | "afterany" => Some(Condition::Any),
        _ => None,
    };
    let invalid = || Problem::invalid(text, EXPECTED);
    match (first, rest) {
        ("afterok" | "afterany", Some(jobs)) => {
            let condition = condition(first).ok_or_else(invalid)?;
            jobs.split(':').map(|job| named(job, condition)).collect()
        }
        (job, None) => Ok(vec![named(job, Condition::Ok)?]),
        (job, Some(word)) => Ok(vec![named(job, condition(word).filter(|_| !word.starts_with("after")).ok_or_else(invalid)?)?]),
    }
}

fn named(job: &str, condition: Condition) -> Result<After, Problem> {
    check_job(job)?;
    Ok(After { job: job.to_owned(), condition })
}

/// Checks the name of a job: a number (not 0), `last` or `@name`.
pub(super) fn check_job(job: &str) -> Result<(), Problem> {
    match job.strip_prefix('@') {
        Some(name) => check_name(name),
        None if job == "last" || (job.bytes().all(|byte| byte.is_ascii_digit()) && job.parse().is_ok_and(|number: u64| number > 0)) => {
            Ok(())
        }
        None => Err(Problem::invalid(job, EXPECTED)),
    }
}

#[cfg(test)]
mod tests {
    use carma_core::Condition::{Any, Ok as Success};

    use super::after;

    #[test]
    fn our_form_and_that_of_slurm_are_read() {
        let read = |text: &str| after(text).unwrap().into_iter().map(|after| (after.job, after.condition)).collect::<Vec<_>>();
        let jobs = |jobs: &[(&str, _)]| jobs.iter().map(|&(job, condition)| (job.to_owned(), condition)).collect::<Vec<_>>();
        assert_eq!(read("12,@data:any,last:ok"), jobs(&[("12", Success), ("@data", Any), ("last", Success)]));
        assert_eq!(read("afterok:12:13,afterany:@data"), jobs(&[("12", Success), ("13", Success), ("@data", Any)]));
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in
            ["", "0", "12,", "12:maybe", "12:afterok", "afternotok:12", "afterok", "afterok:", "@", "@a/b", "-1", "+1", "singleton"]
        {
            assert!(after(wrong).is_err(), "{wrong}");
        }
    }
}
