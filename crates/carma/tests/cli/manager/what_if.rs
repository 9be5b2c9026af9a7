//! `carma what-if` and `/v1/what-if`: measured jobs replayed in the simulator.

use carma_manager::api::{WhatIf, WhatIfQuery};

use super::prediction::LOAD;
use super::served::Served;

#[test]
fn the_present_policy_is_simulated_within_fifteen_percent() {
    let served = Served::start("2xA100-40GB", 60.0, "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n");
    let nothing = served.carma(&["what-if"]);
    let message = String::from_utf8(nothing.stderr).unwrap();
    assert!(!nothing.status.success() && message.contains("there is nothing to replay: no job was submitted in this period"), "{message}");
    let trace = served.write("load.csv", LOAD);
    let replayed = served.json(&["replay", &trace, "--against", "exclusive", "--json"]);
    let answer: WhatIf = serde_json::from_value(served.json(&["what-if", "--json"])).unwrap();
    assert_eq!((answer.jobs, answer.left_out.len()), (5, 0), "{answer:#?}");
    let off = |one: f64, other: f64| (one / other - 1.0).abs();
    assert!(off(answer.simulated.makespan.get(), answer.measured.makespan.get()) < 0.15, "{answer:#?}");
    assert!(off(answer.simulated.completion.get(), answer.measured.completion.get()) < 0.15, "{answer:#?}");
    let exclusive = answer.others.iter().find(|fate| fate.policy == "exclusive").unwrap();
    assert!(exclusive.makespan > answer.measured.makespan && exclusive.wait > answer.measured.wait, "{answer:#?}");
    // Simulated from what was measured of shared GPUs, it is what is simulated from what is known of the jobs alone.
    let known = replayed["against"]["simulated"]["makespan"].as_f64().unwrap();
    assert!(off(exclusive.makespan.get(), known) < 0.15, "{known}: {answer:#?}");
    // The API gives the same answer.
    let query = WhatIfQuery { policies: Some("exclusive".to_owned()), ..WhatIfQuery::default() };
    let mut client = served.client();
    let served_answer = client.what_if(&query).unwrap();
    assert_eq!((served_answer.others.len(), &served_answer.measured.makespan), (1, &answer.measured.makespan));
    let wrong = client.what_if(&WhatIfQuery { policies: Some("best".to_owned()), ..WhatIfQuery::default() }).unwrap_err();
    assert!(wrong.to_string().contains("\"best\" cannot be used"), "{wrong}");
    let table = String::from_utf8(served.carma(&["what-if", "--policy", "exclusive,lug"]).stdout).unwrap();
    assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let blind = String::from_utf8(served.carma(&["what-if", "--policy", "lucid,lug"]).stdout).unwrap();
    assert!(blind.contains("lucid: jobs of unknown GPU utilisation") && !table.contains("jobs of unknown"), "{blind}");
    for message in ["5 jobs submitted from", "carma measured", "carma simulated", "exclusive", "lug", "expect errors of this size"] {
        assert!(table.contains(message), "{message}: {table}");
    }
}
