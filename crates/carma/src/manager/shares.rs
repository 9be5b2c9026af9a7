//! `carma shares`: GPU usage by user, and the next user.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::ShareRow;

use super::common::{AnswerArguments, write_json};
use carma_format::{left, right, write_table};

pub(super) const HELP: &str = "\
With queue.fair_share, users and groups take turns: among jobs of equal priority, \
the group with the lowest RATIO is next, and in it the user with the lowest RATIO. \
PAST is the past use in GPU hours; older use counts less. REST is the predicted rest \
of the running jobs. RATIO is (PAST + REST) / SHARE. GPUS is the number of GPUs in use.\n\n\
Examples:\n  carma shares\n  carma shares --json | jq '.[] | [.uid, .usage_per_share]'";

pub(super) fn run(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let shares = arguments.manager.connect()?.shares()?;
    if arguments.json {
        return write_json(&shares, output);
    }
    if shares.is_empty() {
        eprintln!("carma: no user has used a GPU, or queue.fair_share is not set");
    }
    table(&shares, output)
}

fn table(shares: &[ShareRow], output: &mut impl Write) -> Result<()> {
    let hours = |seconds: f64| format!("{:.1}", seconds / 3600.0);
    let row = |share: &ShareRow| {
        [
            share.user.clone(),
            share.share.to_string(),
            hours(share.gpu_seconds),
            hours(share.committed),
            hours(share.usage_per_share),
            format!("{:.1}", share.gpus),
            share.group.clone(),
            share.group_share.to_string(),
            hours(share.group_usage_per_share),
        ]
    };
    let columns = [
        left("USER", 12),
        right("SHARE", 6),
        right("PAST", 8).spoken("past GPU hours"),
        right("REST", 7).spoken("GPU hours to come"),
        right("RATIO", 8).spoken("GPU hours per share"),
        right("GPUS", 6).spoken("GPUs now"),
        left("GROUP", 10),
        right("SHARE", 6).spoken("share of the group"),
        right("RATIO", 8).spoken("GPU hours per share of the group"),
    ];
    Ok(write_table(columns, &shares.iter().map(row).collect::<Vec<_>>(), output)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_user_is_visible() {
        let row = |uid, gid, gpu_seconds, usage_per_share| ShareRow {
            uid,
            user: if uid == 1 { "ada".to_owned() } else { uid.to_string() },
            gid,
            group: "vision".to_owned(),
            share: 1.0,
            group_share: 2.5,
            gpu_seconds,
            gpus: 1.25,
            committed: 7_200.0,
            usage_per_share,
            group_usage_per_share: 720_000.0,
        };
        let mut output = Vec::new();
        table(&[row(1, 10, 9_000.0, 16_200.0), row(1002, 10, 3.6e6, 3.6e6)], &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("shares", text);
    }
}
