//! A preview of a submission, and the forecast of a running manager.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use carma_manager::api::Forecast;
use carma_manager::client::ClientError;
use carma_manager::request::JobRequest;
use carma_manager::submission::ValidSubmission;
use serde::Serialize;

use super::view;
use crate::manager::{Manager, devices, estimate};
use crate::progress::with_spinner;
use carma_format::printable;
use carma_format::wrapped;

/// A request with its forecast, if a manager answered.
#[derive(Debug, Serialize)]
struct Planned {
    #[serde(flatten)]
    request: JobRequest,
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<Forecast>,
}

/// Fails if a job can never start, as its submission would.
pub(super) fn run(submissions: &[ValidSubmission], manager: &Manager, json: bool, output: &mut impl Write) -> Result<ExitCode> {
    let forecasts = forecasts(submissions, manager)?;
    let impossible = |forecast: &Forecast| forecast.why.as_ref().is_some_and(|why| why.reason.is_for_ever());
    let code = if forecasts.iter().flatten().any(impossible) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if !json {
        view::table(submissions, output)?;
        forecasts.iter().filter_map(|jobs| jobs.first()).try_for_each(|first| write!(output, "\n{}", text(first)))?;
        return Ok(code);
    }
    // Written one by one: a hundred thousand environments need not be in memory together.
    let mut before = "[";
    let mut forecasts = forecasts.into_iter().flatten();
    for request in submissions.iter().flat_map(ValidSubmission::requests) {
        let planned = Planned { request: request.without_secrets(), forecast: forecasts.next() };
        write!(output, "{before}\n{}", serde_json::to_string_pretty(&planned)?)?;
        before = ",";
    }
    writeln!(output, "\n]")?;
    Ok(code)
}

/// The forecasts of each submission; none if no manager runs.
fn forecasts(submissions: &[ValidSubmission], manager: &Manager) -> Result<Vec<Vec<Forecast>>> {
    match manager.connect() {
        Err(ClientError::NoManager(_)) => {
            if submissions.iter().flat_map(ValidSubmission::requests).any(|request| request.hints.dry_run) {
                eprintln!("carma: no manager runs, so nothing was estimated: use carma trace-memory");
            }
            Ok(Vec::new())
        }
        client => {
            let mut client = client?;
            let mut forecast = |submission: &ValidSubmission| client.forecast(submission.as_sent());
            // The manager may dry-run each.
            Ok(with_spinner("estimating", || submissions.iter().map(&mut forecast).collect::<Result<_, _>>())?)
        }
    }
}

/// The forecast of the first job; others of an array are alike.
fn text(forecast: &Forecast) -> String {
    let expected = estimate(&forecast.estimate).unwrap_or_else(|| "no estimate before its first run".to_owned());
    let place = match (&forecast.placement, &forecast.why) {
        (Some(placement), _) if placement.devices.is_empty() => "It would start now.".to_owned(),
        (Some(placement), _) => format!("It would start now on GPU {}.", devices(placement.devices.iter().map(|granted| granted.device))),
        (None, Some(why)) if why.reason.is_for_ever() => format!("It {}.", why.reason),
        (None, Some(why)) => format!("It would wait: {}", why.text),
        (None, None) => "It would wait.".to_owned(),
    };
    let notes = forecast.estimate.notes.iter().map(|note| wrapped(&printable(note)));
    let place = place.lines().map(printable);
    [wrapped(&format!("Estimate: {}", printable(&expected)))].into_iter().chain(notes).chain(place).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use carma_core::{DeviceId, Granted, JobId, Limits, MiB, Placement, ServerId, State, Time, WaitReason};
    use carma_manager::api::{EstimateDetail, Why};

    use super::*;

    #[test]
    fn a_forecast_says_what_is_expected_and_where_it_would_go() {
        let device = DeviceId::gpu(ServerId(0), 2);
        let placement = Placement { server: ServerId(0), devices: vec![Granted { device, reserved: MiB(1024), limits: Limits::Streams }] };
        let estimate = EstimateDetail {
            expected: Some(MiB(7118)),
            upper: Some(MiB(8192)),
            source: Some("static".to_owned()),
            ..EstimateDetail::default()
        };
        let starts = Forecast { estimate, placement: Some(placement), why: None };
        let text_of_why = "job 1 is next in the queue: no GPU has room\n  s0/gpu0 has 2 GiB left".to_owned();
        let why = Why {
            pools: Vec::new(),
            job: JobId(1),
            state: State::Queued { since: Time::ZERO },
            reason: WaitReason::Room,
            summary: "job 1 is next in the queue: no GPU has room".to_owned(),
            starts: None,
            devices: Vec::new(),
            hosts: Vec::new(),
            text: text_of_why,
        };
        let waits = Forecast { estimate: EstimateDetail::default(), placement: None, why: Some(why) };
        insta::assert_snapshot!("forecast", format!("{}\n{}", text(&starts), text(&waits)));
    }
}
