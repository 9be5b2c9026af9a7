//! One submission, many jobs; and any text at all.

use std::collections::BTreeSet;

use carma_manager::request::JobCommand;
use carma_manager::submission::KEYS;
use proptest::prelude::*;

use super::{ask, command, requests, text};

#[test]
fn an_array_is_a_job_for_each_index_in_order() {
    let jobs = requests(command(&["a", "{index}"]), &[("array", "1-5:2,10%2"), ("name", "x")]);
    let indices: Vec<u32> = jobs.iter().map(|job| job.array.as_ref().unwrap().index).collect();
    assert_eq!(indices, [1, 3, 5, 10]);
    assert!(jobs.iter().zip(&indices).all(|(job, index)| job.environment["CARMA_ARRAY_INDEX"] == index.to_string()));
    assert!(jobs.iter().all(|job| job.schedule.at_most == Some(2) && job.name.as_deref() == Some("x")));
    assert_eq!(jobs[0].command, JobCommand::Program(vec!["a".to_owned(), "{index}".to_owned()]), "other braces stay");
}

#[test]
fn a_sweep_is_a_job_for_each_combination() {
    let jobs =
        requests(command(&["train", "--lr={lr}", "{seed}{seed}"]), &[("param", "lr=0.1,0.01"), ("param", "seed=1..2"), ("at-most", "3")]);
    let commands = jobs.iter().map(|job| match &job.command {
        JobCommand::Program(words) => words.join(" "),
        JobCommand::Script { .. } => unreachable!("a program was asked for"),
    });
    assert_eq!(commands.collect::<Vec<_>>(), ["train --lr=0.1 11", "train --lr=0.1 22", "train --lr=0.01 11", "train --lr=0.01 22"]);
    assert_eq!(jobs.iter().map(|job| job.array.as_ref().unwrap().index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((jobs[3].environment["CARMA_PARAM_LR"].as_str(), jobs[3].environment["CARMA_PARAM_SEED"].as_str()), ("0.01", "2"));
    assert_eq!(jobs[3].array.as_ref().unwrap().parameters["lr"], "0.01");
}

#[test]
fn the_largest_array_is_made_job_by_job() {
    let (submissions, _) = ask(command(&["a"]), &[("array", "0-99999")]).unwrap();
    assert_eq!(submissions[0].jobs(), 100_000);
    assert_eq!(submissions[0].requests().last().unwrap().array.unwrap().index, 99_999);
}

proptest! {
    #[test]
    fn sweep_members_are_distinct_and_complete(sizes in prop::collection::vec(1_usize..5, 1..4)) {
        let parameters: Vec<String> = sizes.iter().enumerate().map(|(place, size)| format!("p{place}=1..{size}")).collect();
        let said: Vec<(&str, &str)> = parameters.iter().map(|parameter| ("param", parameter.as_str())).collect();
        let (submissions, _) = ask(command(&["a"]), &said).unwrap();
        let labels: Vec<_> = submissions[0].requests().map(|job| job.array.unwrap()).collect();
        prop_assert_eq!(labels.len(), submissions[0].jobs());
        prop_assert_eq!(labels.len(), sizes.iter().product::<usize>());
        prop_assert_eq!(labels.iter().map(|label| &label.parameters).collect::<BTreeSet<_>>().len(), labels.len());
        prop_assert!(labels.iter().enumerate().all(|(place, label)| label.index as usize == place));
    }

    #[test]
    fn any_value_of_any_flag_is_taken_or_refused(key in 0..KEYS.len(), value in "\\PC{0,20}|[0-9:%,.=a-z+-]{0,12}") {
        let _ = ask(command(&["a"]), &[(KEYS[key].name, &value)]);
    }

    #[test]
    fn any_file_is_read_or_refused(name in "(a.toml|a.rad|a.sh|-)", lines in prop::collection::vec("(#CARMA |#SBATCH |conda activate |\\[\\[job\\]\\]|)\\PC{0,20}", 0..6)) {
        let file = lines.join("\n");
        let _ = ask(text(&name, &file), &[]);
        let _ = ask(text(&name, &format!("#!/bin/sh\n{file}")), &[]);
    }
}
