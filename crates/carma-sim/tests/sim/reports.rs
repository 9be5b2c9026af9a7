//! Reports: their form, and that any input gives a complete file.

mod fixed;

use carma_core::{Preset, Seconds, Settings};
use carma_sim::report::{html, svgs, trace_charts};
use carma_sim::trace::{Generation, generate};
use carma_sim::{
    Catalogue, Comparison, Contender, Curve, CurvePoint, Estimator, InterferenceModel, Knowledge, LowerBounds, Origin, Physics, Servers,
    Sharing, Simulation, Trace,
};

use fixed::{comparison, contender, crowded};

/// Fails unless the text is well-formed.
fn parse(text: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse_with_options(text, roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() }).unwrap()
}

#[test]
fn charts_match_their_snapshots() {
    for (name, content) in svgs(&comparison()) {
        // The style sheet is the same in all of them.
        let (head, rest) = content.split_once("<style>").unwrap();
        let (style, body) = rest.split_once("</style>").unwrap();
        insta::assert_snapshot!(name.as_str(), format!("{head}{body}"));
        if name == "bars.svg" {
            insta::assert_snapshot!("style", style);
        }
    }
}

#[test]
fn charts_have_names() {
    let names: Vec<String> = svgs(&comparison()).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "bars.svg",
        "jct-cdf.svg",
        "gantt-exclusive.svg",
        "timeline-exclusive.svg",
        "gantt-or-magm-80-so.svg",
        "timeline-or-magm-80-so.svg",
        "sweep-smact.svg",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_file_is_well_formed_and_the_same_again() {
    let (page, charts) = (html(&comparison()), svgs(&comparison()));
    assert_eq!(page, html(&comparison()));
    assert_eq!(charts, svgs(&comparison()));
    parse(&page);
    for (name, chart) in &charts {
        assert_eq!(parse(chart).root_element().tag_name().name(), "svg", "{name}");
    }
}

#[test]
fn names_are_text_and_never_markup() {
    let comparison = comparison();
    let name = &comparison.contenders[1].name;
    let page = html(&comparison);
    assert!(!page.contains("<jobs>") && !page.contains("<\"80") && !page.contains("<one>"));
    let document = parse(&page);
    let row = document.descendants().find(|node| node.has_tag_name("th") && node.text() == Some(name));
    assert!(row.is_some(), "the name is there as it was given");
}

#[test]
fn a_page_asks_for_nothing_else() {
    let page = html(&comparison());
    for word in ["<script", "<link", "@import", "src=", "url(http", "href=\"http"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn ids_are_used_once() {
    let mut twins = comparison();
    twins.contenders.push(twins.contenders[1].clone());
    let page = html(&twins);
    let document = parse(&page);
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn failed_jobs_have_a_column_only_where_there_are_any() {
    let mut comparison = comparison();
    assert!(!html(&comparison).contains("Failed jobs"));
    comparison.contenders[1].summaries[0].failed = 1;
    assert!(html(&comparison).contains("Failed jobs"));
}

#[test]
fn an_empty_comparison_is_a_page() {
    let empty = Comparison { contenders: Vec::new(), curves: Vec::new(), caveats: Vec::new(), jobs: 0, ..comparison() };
    parse(&html(&empty));
    let mut bare = comparison();
    for contender in &mut bare.contenders {
        contender.example.jobs.clear();
        contender.example.gpus.clear();
        contender.example.ended = carma_core::Time::ZERO;
    }
    parse(&html(&bare));
}

#[test]
fn many_jobs_on_many_gpus_stay_below_five_megabytes() {
    let contenders: Vec<Contender> = (0..12).map(|place| contender(&format!("policy {place}"), crowded(20_000, 24))).collect();
    let page = html(&Comparison { contenders, ..comparison() });
    parse(&page);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("The first 16 of 24 GPUs are shown."));
    assert!(page.contains("attempts on them are drawn"));
}

#[test]
fn a_trace_has_three_charts() {
    let catalogue = Catalogue::shipped();
    let files = trace_charts(&made_up(&catalogue), &catalogue);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["arrivals.svg", "durations.svg", "gpu-demand.svg"]);
    for (_, chart) in &files {
        parse(chart);
    }
    for (_, chart) in trace_charts(&Trace::default(), &catalogue) {
        parse(&chart);
    }
}

fn made_up(catalogue: &Catalogue) -> Trace {
    let mix = "65/27/8".parse().unwrap();
    generate(&Generation { mix, jobs: 60, mean_gap: Seconds::new(240.0).unwrap(), seed: 7 }, catalogue).unwrap()
}

/// Policies on a made-up trace, as the command would compare them.
fn simulated(policies: &[&str]) -> Comparison {
    let (catalogue, interference) = (Catalogue::shipped(), InterferenceModel::shipped());
    let trace = made_up(&catalogue);
    let servers: Servers = "4xA100-40GB".parse().unwrap();
    let contender = |policy: &&str| {
        let settings = Settings { preset: Some(Preset::Aegis), policy: Some((*policy).to_owned()), ..Settings::default() };
        let knowledge = Knowledge { memory: Estimator::Oracle, ..Knowledge::default() };
        let run = |seed| {
            let simulation = Simulation {
                catalogue: &catalogue,
                interference: &interference,
                physics: Physics::default(),
                trace: &trace,
                servers: &servers,
                sharing: Sharing::Streams,
                settings: &settings,
                knowledge: &knowledge,
                disturbances: &[],
                seed,
                timeline: seed == 0,
            };
            simulation.run().unwrap()
        };
        let example = run(0);
        let summaries = [example.summary()].into_iter().chain((1..5).map(|seed| run(seed).summary())).collect();
        Contender { name: (*policy).to_owned(), summaries, example }
    };
    let curve = |policy: &str, slope: f64| Curve {
        policy: policy.to_owned(),
        setting: "smact".to_owned(),
        points: (5_u32..=10)
            .map(|step| {
                let value = f64::from(step) / 10.0;
                let ratio = 1.0 - slope * value;
                CurvePoint {
                    value,
                    makespan_ratio: ratio,
                    mean_jct_ratio: ratio * 0.8,
                    energy_ratio: ratio * 1.05,
                    oom_attempts: value * 9.0,
                }
            })
            .collect(),
    };
    Comparison {
        trace: "generated 65/27/8".to_owned(),
        jobs: trace.jobs.len(),
        servers: servers.to_string(),
        seeds: 5,
        contenders: policies.iter().map(contender).collect(),
        bounds: LowerBounds::of(&trace, &catalogue, &servers),
        curves: vec![curve("or-magm", 0.4), curve("magm", 0.3)],
        caveats: vec![
            "Slowdowns between workloads that were never measured together come from a model.".to_owned(),
            "GPUs other than the A100-40GB are scaled by their memory bandwidth.".to_owned(),
        ],
        origin: Origin::default(),
    }
}

#[test]
fn a_simulated_comparison_is_a_page() {
    parse(&html(&simulated(&["exclusive", "or-magm"])));
}

#[test]
#[ignore = "writes files to look at"]
fn a_report_to_look_at() {
    let directory = std::env::temp_dir().join("carma-report");
    std::fs::create_dir_all(&directory).unwrap();
    let comparison = simulated(&["exclusive", "or-magm", "magm", "lucid"]);
    let catalogue = Catalogue::shipped();
    let charts = svgs(&comparison).into_iter().chain(trace_charts(&made_up(&catalogue), &catalogue));
    let large = Comparison {
        contenders: vec![contender("exclusive", crowded(20_000, 24)), contender("many", crowded(900, 24))],
        ..comparison.clone()
    };
    let pages = [("report.html", &comparison), ("large.html", &large)].map(|(name, comparison)| (name.to_owned(), html(comparison)));
    for (name, content) in charts.chain(pages) {
        std::fs::write(directory.join(name), content).unwrap();
    }
}
