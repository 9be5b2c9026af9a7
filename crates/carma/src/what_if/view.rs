//! The answer for people, in 80 columns.

use std::io::Write;

use anyhow::Result;
use carma_core::Seconds;
use carma_manager::api::{WhatIf, WhatIfRun};
use carma_manager::store::UnixMillis;
use carma_sim::ratio;
use jiff::tz::TimeZone;

use crate::manager::moment;
use carma_format::{clock, count, energy, wrapped};
use carma_format::{left, right, write_table};

/// Prints the measured results, and the rest as ratios to them.
pub(super) fn write(answer: &WhatIf, (since, until): (UnixMillis, UnixMillis), zone: &TimeZone, output: &mut impl Write) -> Result<()> {
    let [since, until] = [since, until].map(|at| moment(at, zone).chars().take(16).collect::<String>());
    writeln!(output, "{} submitted from {since} to {until}", count(answer.jobs as usize, "job"))?;
    writeln!(output, "Times and energy are shares of the measured values, except for waits.\n")?;
    let WhatIf { measured, simulated, others, .. } = answer;
    let times = |what_if_run: &WhatIfRun| [what_if_run.makespan, what_if_run.completion, what_if_run.completion_p95].map(Seconds::get);
    let row = |name: String, what_if_run: &WhatIfRun, [makespan, completion, p95]: [String; 3], energy: Option<String>| {
        let attempts = format!("{:.1}", what_if_run.out_of_memory);
        [name, makespan, clock(what_if_run.wait.get()), completion, p95, energy.unwrap_or_else(|| "-".to_owned()), attempts]
    };
    let joules = measured.energy.map(|joules| joules.0);
    let mut rows = vec![row(format!("{} measured", measured.policy), measured, times(measured).map(clock), joules.map(energy))];
    let simulated = [(format!("{} simulated", simulated.policy), simulated)];
    for (name, what_if_run) in simulated.into_iter().chain(others.iter().map(|what_if_run| (what_if_run.policy.clone(), what_if_run))) {
        let mut whole = times(measured).into_iter();
        let shares = times(what_if_run).map(|part| format!("{:.2}", ratio(part, whole.next().unwrap_or_default())));
        let energy = what_if_run.energy.zip(joules).map(|(part, whole)| format!("{:.2}", ratio(part.0, whole)));
        rows.push(row(name, what_if_run, shares, energy));
    }
    let columns = [
        left("", 24),
        right("LAST DONE", 11),
        right("WAIT", 11),
        right("COMPLETION", 11),
        right("ITS P95", 11),
        right("ENERGY", 10),
        right("OOM", 6),
    ];
    write_table(columns, &rows, output)?;
    writeln!(output, "\n{}", wrapped(&simulator_error(answer)))?;
    answer.left_out.iter().try_for_each(|note| Ok(writeln!(output, "{}", wrapped(note))?))
}

/// The simulator's error against the measurement under the rules in force.
pub(crate) fn simulator_error(WhatIf { measured, simulated, .. }: &WhatIf) -> String {
    let off = |of: fn(&WhatIfRun) -> Seconds| {
        let percent = (100.0 * (ratio(of(simulated).get(), of(measured).get()) - 1.0)).round();
        if percent == 0.0 { "less than 1 %".to_owned() } else { format!("{percent:+.0} %") }
    };
    format!(
        "Under the present policy, the simulator differs from the measurement by {} in the makespan and by {} in the mean completion time: expect \
         errors of this size for other policies.",
        off(|what_if_run| what_if_run.makespan),
        off(|what_if_run| what_if_run.completion)
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use carma_manager::store::Joules;

    use super::*;

    /// Jobs that share GPUs, against one a GPU.
    pub(crate) fn sample() -> WhatIf {
        let what_if_run = |policy: &str, makespan, wait| WhatIfRun {
            policy: policy.to_owned(),
            makespan: Seconds::from_secs(makespan),
            wait: Seconds::from_secs(wait),
            completion: Seconds::from_secs(makespan / 2),
            completion_p95: Seconds::from_secs(makespan - 60),
            energy: Some(Joules(makespan as f64 * 400.0)),
            out_of_memory: 1.5,
        };
        WhatIf {
            jobs: 12,
            left_out: vec!["1 job left out: never ran".to_owned()],
            measured: WhatIfRun { energy: None, ..what_if_run("magm", 3600, 30) },
            simulated: what_if_run("magm", 3500, 20),
            others: vec![what_if_run("exclusive", 7200, 900), what_if_run("or-magm/aegis/no-screen", 3650, 0)],
        }
    }

    #[test]
    fn the_answer_fits_the_terminal() {
        let mut output = Vec::new();
        write(&sample(), (UnixMillis(1_800_000_000_000), UnixMillis(1_800_086_400_000)), &TimeZone::UTC, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("what-if", text);
    }
}
