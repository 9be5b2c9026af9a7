//! The page: its subject, its sections, and how they were made.

use carma_format::draw::{Element, page};

use super::data::ReportData;
use super::energy::energy;
use super::estimates::estimates;
use super::headline::headline;
use super::jobs::{failures, largest};
use super::parts::{joined, note, paragraph, section};
use super::recoveries::recoveries;
use super::sharing::sharing;
use super::utilisation::utilisation;
use super::waiting::waiting;
use crate::origin::VERSION;
use carma_format::count;

const STYLE: &str = include_str!("report.css");

/// Sections, as the contents name them.
const CONTENTS: [(&str, &str); 9] = [
    ("utilisation", "Utilisation"),
    ("waiting", "Waiting"),
    ("sharing", "Collocation"),
    ("memory", "Out of memory"),
    ("estimates", "Estimates"),
    ("energy", "Energy and CO2"),
    ("largest", "Largest jobs"),
    ("failures", "Failures"),
    ("method", "Method"),
];

/// All of it as one file.
pub(super) fn html(data: &ReportData) -> String {
    let title = match &data.user {
        Some(user) => format!("GPU report of {user}"),
        None => "GPU report".to_owned(),
    };
    let facts = format!(
        "{} · {} · {} · policy {}",
        data.requested.text(),
        count(data.gpus.len(), "GPU"),
        data.status.gpu_source,
        data.status.policy
    );
    let mut parts = vec![Element::new("h1").text(&title), Element::of_class("p", "facts").text(&facts)];
    if data.jobs.is_empty() && data.gpus.iter().all(|(_, samples)| samples.minutes == 0) {
        parts.push(paragraph(
            "No data in this period: no job was submitted, and no GPU samples are stored. Choose a longer period, such as carma report --since 30d, or \
             try again after jobs have run.",
        ));
        parts.push(method(data));
        return page(&title, STYLE, &joined(&parts));
    }
    let link = |list: Element, (id, name): &(&str, &str)| list.child(&Element::new("a").attribute("href", &format!("#{id}")).text(name));
    parts.push(CONTENTS.iter().fold(Element::new("nav").attribute("aria-label", "Contents"), link));
    parts.push(headline(data));
    parts.extend([
        utilisation(data),
        waiting(data),
        sharing(data),
        recoveries(data),
        estimates(data),
        energy(data),
        largest(data),
        failures(data),
        method(data),
    ]);
    page(&title, STYLE, &joined(&parts))
}

fn method(data: &ReportData) -> Element {
    let notes = [
        "The report covers the jobs that were submitted in this period, with all they did until now: attempts, GPU hours and energy. Earlier jobs are not \
         included, even if they ran in this period. Readers who are not operators see only public data of jobs of others.",
        "GPUs are sampled every few seconds and stored as means per minute, for all users together. The energy of a GPU is divided among its jobs by their \
         activity, as the driver reports it.",
        "For the comparison with one job per GPU, the interference model of carma simulate computes the run time of each job alone from its measured run. Then \
         all jobs are simulated on the same types of GPUs. A good match under the present policy shows that the simulated schedule and memory are right. The \
         slowdown by sharing comes from the same model in both directions, and is as accurate as this model.",
    ];
    let moment = data.requested.moment(data.status.now);
    let made = format!("Made on {moment} by carma {VERSION} with: {}", data.command);
    let settings = format!("Of a manager of version {} with the settings {}", data.status.version, data.settings);
    let page = section("method", "Method and limits").attribute("class", "method");
    let page = notes.iter().fold(page, |page, text| page.child(&note(text)));
    let emulated = note("The GPUs are emulated: times and energy are emulated.");
    let page = if data.status.emulated { page.child(&emulated) } else { page };
    page.child(&note(&made)).child(&note(&settings))
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, MiB, Outcome, Seconds, State, Time, UserId, Utilisation, Verdict, Watts};
    use carma_manager::api::{Counts, EnergyReport, JobDetail, Status};
    use carma_manager::api::{EnergyOf, EnergySum};
    use carma_manager::store::{Joules, MinuteMean, UnixMillis, UnixMinute};
    use jiff::tz::TimeZone;

    use super::super::period::Period;
    use super::super::samples::GpuSamples;
    use super::*;
    use crate::manager::sample;
    use crate::what_if;

    const BEGIN: u64 = 1_800_000_000_000;

    fn data() -> ReportData {
        let succeeded = |mut job: JobDetail| {
            job.state = State::Done { at: Time::ZERO, outcome: Outcome::Succeeded };
            job.attempts[1].verdict = Some(Verdict::Succeeded);
            job.owner.name = "<grace & co>".to_owned();
            job
        };
        let period = Period { since: UnixMillis(BEGIN), until: UnixMillis(BEGIN + 3_600_000), zone: TimeZone::UTC };
        let gpu = what_if::sample_gpu(3, "NVIDIA A100-SXM4-40GB");
        let minute = |minute: u64| MinuteMean {
            device: gpu.device,
            minute: UnixMinute(BEGIN / 60_000 + minute),
            readings: 12,
            memory_used: MiB(minute * 500),
            utilisation: Utilisation::of([(Metric::Smact, minute as f64 / 60.0)]),
            power: Some(Watts(300.0)),
        };
        let samples = GpuSamples::of(&(20..50).map(minute).collect::<Vec<_>>(), &period);
        let of = EnergyOf::User { uid: UserId(1), name: "of earlier jobs".to_owned() };
        let ended = EnergySum { of, name: None, array: None, energy: Joules(5.4e6), attempts: 2 };
        let status = Status {
            version: String::new(),
            pid: 1,
            now: period.until,
            started: period.since,
            up: Seconds::from_secs(3600),
            observes: false,
            draining: false,
            gpu_source: "NVIDIA GPUs".to_owned(),
            emulated: false,
            speed: 1.0,
            gpus: 1,
            servers: 0,
            pools: 0,
            left_out: Vec::new(),
            metrics: Vec::new(),
            policy: "magm".to_owned(),
            jobs: Counts::default(),
            not_enforced: Vec::new(),
            errors: Vec::new(),
            problems: Vec::new(),
        };
        ReportData {
            requested: period.clone(),
            period,
            user: None,
            status,
            gpus: vec![(gpu, samples)],
            jobs: vec![sample(), succeeded(sample())],
            // What the manager sums up over attempts that ended in the period: not what the report is about.
            energy: EnergyReport { sums: vec![ended], price: Some(0.3), currency: "EUR".to_owned(), carbon: Some(380.0) },
            what_if: Ok(what_if::sample()),
            command: "carma report --since 1h".to_owned(),
            settings: r#"{"preset":"carma","policy":"magm"}"#.to_owned(),
        }
    }

    fn body(data: &ReportData) -> String {
        let page = html(data);
        page.split_once("</style>").unwrap().1.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }

    #[test]
    fn a_page_has_every_section_and_loads_nothing_else() {
        let page = html(&data());
        for (id, _) in CONTENTS {
            assert_eq!(page.matches(&format!("<section id=\"{id}\"")).count(), 1, "{id}");
        }
        // The name space of SVG is a name, not an address to ask.
        let plain = page.replace("http://www.w3.org/2000/svg", "");
        for asks in ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "<grace"] {
            assert!(!plain.contains(asks), "{asks}");
        }
        insta::assert_snapshot!("page", body(&data()));
    }

    #[test]
    fn several_servers_are_named() {
        let mut several = data();
        let (mut gpu, samples) = (several.gpus[0].0.clone(), several.gpus[0].1.clone());
        (gpu.device, gpu.node) = ("s1/gpu0".parse().unwrap(), Some("gn1".to_owned()));
        several.gpus.push((gpu, samples));
        let page = body(&several);
        assert!(page.contains("s1/gpu0 on gn1") && page.contains("on 2 GPUs of 2 servers"), "{page}");
        assert!(!body(&data()).contains(" servers"));
    }

    #[test]
    fn energy_is_that_of_the_jobs_of_the_report_by_the_day_of_its_attempts() {
        let mut two_days = data();
        assert!(!body(&two_days).contains("kWh a day") && !body(&two_days).contains("of earlier jobs"));
        two_days.jobs[1].attempts[1].ended = Some(UnixMillis(BEGIN + 86_400_000));
        let page = body(&two_days);
        assert!(page.contains("kWh a day") && page.contains("2027-01-16: 12 Wh"), "{page}");
    }

    #[test]
    fn an_empty_period_says_so() {
        let empty = ReportData {
            jobs: Vec::new(),
            gpus: Vec::new(),
            what_if: Err("there is nothing to replay".to_owned()),
            user: Some("ada".to_owned()),
            ..data()
        };
        insta::assert_snapshot!("empty", body(&empty));
    }

    #[test]
    fn empty_sections_say_so() {
        let mut quiet = data();
        quiet.jobs.clear();
        quiet.what_if = Err("there is nothing to replay: no job was submitted in this period".to_owned());
        let page = body(&quiet);
        for notes in [
            "No job started in this period.",
            "The same jobs were not simulated: there is nothing to replay: no job was submitted in this period.",
            "No job ran out of GPU memory.",
            "No successful job has both",
            "No job that was submitted in this period has energy data.",
            "No job that was submitted in this period had a GPU.",
            "All finished jobs succeeded.",
        ] {
            assert!(page.contains(notes), "{notes}");
        }
    }
}
