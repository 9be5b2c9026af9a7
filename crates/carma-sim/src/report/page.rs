//! The HTML page: one file without external resources or scripts.

use std::fmt::Write;

use super::charts::{Charts, Section};
use super::table::table;
use crate::compare::{Comparison, spread};
use crate::origin::{Origin, PolicyOrigin};
use carma_format::draw::{Chart, escape};
use carma_format::{count, duration, energy};

/// The whole page.
pub(super) fn page(comparison: &Comparison, charts: &Charts) -> String {
    let trace = escape(&comparison.trace);
    let mut html = String::new();
    let [jobs, seeds] = [count(comparison.jobs, "job"), count(comparison.seeds, "seed")];
    let servers = escape(&comparison.servers);
    let _ = write!(html, "<h1>Policies on {trace}</h1>\n<p class=\"facts\">{jobs} · {servers} · {seeds} · simulated</p>\n");
    contents(&mut html, charts);
    html.push_str("<h2 id=\"summary\">Summary</h2>\n");
    how_to_read(&mut html, comparison);
    let _ = writeln!(html, "<div class=\"scroll\" tabindex=\"0\">\n{}</div>", table(comparison));
    caveats(&mut html, comparison);
    figure(&mut html, "wide", &charts.bars);
    html.push_str("<h2 id=\"completion\">Job completion times</h2>\n");
    html.push_str("<p class=\"note\">First seed. Further left is better; a curve that stays below 100 % has jobs that never ended.</p>\n");
    figure(&mut html, "narrow", &charts.completion_times);
    for (part, contender) in charts.sections.iter().zip(&comparison.contenders) {
        section(&mut html, part, &contender.example.summary());
    }
    if !charts.sweeps.is_empty() {
        html.push_str("<h2 id=\"sweeps\">Sweeps</h2>\n");
        for sweep in &charts.sweeps {
            let _ = writeln!(html, "<h3>{}</h3>", escape(&sweep.setting));
            figure(&mut html, "narrow", &sweep.chart);
        }
    }
    origin(&mut html, &comparison.origin);
    carma_format::draw::page(&format!("Policies on {}", comparison.trace), "", &html)
}

/// How to make the page again.
fn origin(html: &mut String, origin: &Origin) {
    let Origin { carma, command, inputs, seeds, policies } = origin;
    html.push_str("<h2 id=\"origin\">How this was made</h2>\n");
    for (name, value) in [("Command", command), ("Version", carma), ("Seeds", seeds)] {
        let _ = writeln!(html, "<p class=\"note\">{name}: {}</p>", escape(value));
    }
    for input in inputs {
        let _ = writeln!(html, "<p class=\"note\">Input: {}</p>", escape(&input.to_string()));
    }
    html.push_str("<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr>");
    html.push_str(
        "<th scope=\"col\">Policy</th><th scope=\"col\">Memory estimates</th><th scope=\"col\">Settings</th></tr></thead>\n<tbody>\n",
    );
    for PolicyOrigin { name, estimator, settings } in policies {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"meaning\">{}</td><td class=\"meaning\">{}</td></tr>",
            escape(name),
            escape(estimator),
            escape(settings)
        );
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

fn contents(html: &mut String, charts: &Charts) {
    html.push_str("<nav><a href=\"#summary\">Summary</a><a href=\"#completion\">Completion times</a>");
    for Section { name, slug, .. } in &charts.sections {
        let _ = write!(html, "<a href=\"#policy-{slug}\">{}</a>", escape(name));
    }
    if !charts.sweeps.is_empty() {
        html.push_str("<a href=\"#sweeps\">Sweeps</a>");
    }
    html.push_str("<a href=\"#origin\">How this was made</a>");
    html.push_str("</nav>\n");
}

fn how_to_read(html: &mut String, comparison: &Comparison) {
    html.push_str(
        "<p>How to read this: ratios are to exclusive, one job a GPU at a time, so 0.60 is 40 % less; ± is one standard deviation \
         of single runs; pairs of seeds mirror each other, so means vary less than this suggests; the best value of each column is marked. JCT is the time from a job's submission to its end.</p>\n",
    );
    if let Some(exclusive) = comparison.contenders.first().filter(|exclusive| !exclusive.summaries.is_empty()) {
        let mean = |of| spread(&exclusive.summaries, of).0;
        let _ = writeln!(
            html,
            "<p class=\"note\">A ratio of 1 is a makespan of {}, a mean JCT of {}, and {} of energy.</p>",
            duration(mean(|summary| summary.makespan)),
            duration(mean(|summary| summary.mean_jct)),
            energy(mean(|summary| summary.energy))
        );
    }
}

fn caveats(html: &mut String, comparison: &Comparison) {
    if comparison.caveats.is_empty() {
        return;
    }
    html.push_str("<div class=\"caveats\"><strong>Bear in mind</strong>\n<ul>\n");
    for caveat in &comparison.caveats {
        let _ = writeln!(html, "<li>{}</li>", escape(caveat));
    }
    html.push_str("</ul></div>\n");
}

fn section(html: &mut String, part: &Section, summary: &crate::RunSummary) {
    let Section { name, slug, gantt, left_out, timeline } = part;
    let _ = writeln!(html, "<section>\n<h2 id=\"policy-{slug}\">{}</h2>", escape(name));
    let failed = if summary.failed > 0 { format!(", {} failed", count(summary.failed, "job")) } else { String::new() };
    let _ = writeln!(
        html,
        "<p class=\"facts\">First seed: makespan {}, mean JCT {}, {}, {} out of memory, mean slowdown {:.2}{failed}.</p>",
        duration(summary.makespan),
        duration(summary.mean_jct),
        energy(summary.energy),
        count(summary.oom_attempts, "attempt"),
        summary.mean_slowdown
    );
    for words in left_out {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(words));
    }
    html.push_str(
        "<h3>Jobs on each GPU</h3>\n<p class=\"note\">Numbered as in the trace, each job in one colour; hatched red: ran out of memory. \
         The pointer shows times and slowdown.</p>\n",
    );
    figure(html, "wide", gantt);
    html.push_str("<h3>Each GPU over time</h3>\n");
    match timeline {
        Some(timeline) => figure(html, "wide", timeline),
        None => html.push_str("<p class=\"note\">No timeline was kept of this run.</p>\n"),
    }
    html.push_str("</section>\n");
}

fn figure(html: &mut String, width: &str, chart: &Chart) {
    let _ = write!(html, "<figure class=\"scroll {width}\" tabindex=\"0\">\n{}</figure>\n", chart.inline());
}
