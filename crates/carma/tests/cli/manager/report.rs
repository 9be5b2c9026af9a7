//! `carma report`: the page, and its PDF if a browser is installed.

use std::fs;
use std::path::Path;

use carma_testing::need;

use super::served::Served;

#[test]
fn a_report_is_written_as_html_and_pdf() {
    let served = Served::start("2xA100-40GB", 200.0, "[manager.energy]\nprice = 0.3\ncarbon = 380.0\n");
    let page = served.write("report.html", "");
    let report = |arguments: &[&str]| {
        let output = served.carma(&[&["report"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let empty = report(&["--output", "-"]);
    assert!(empty.contains("No data in this period") || empty.contains("No job started in this period"), "{empty}");
    let trace = served.write("two.csv", "submit,workload,duration\n0,unet_voc,120\n5,bert_base_wiki_bs32,120\n9,gpt2_large_wiki_bs8,90\n");
    served.json(&["replay", &trace, "--estimator", "none", "--json"]);
    assert_eq!(report(&["--since", "1d", "-o", &page]), "", "it goes to the file");
    let html = fs::read_to_string(&page).unwrap();
    let pieces = [
        "<h1>GPU report</h1>",
        "unet_voc",
        "bert_base_wiki_bs32",
        "one job per GPU, simulated",
        "The GPUs are emulated",
        "of CO2",
        "carma report --since 1d",
    ];
    for message in pieces {
        assert!(html.contains(message), "{message}: {html}");
    }
    let me = rustix::process::geteuid().as_raw().to_string();
    let mine = report(&["--user", &me, "-o", "-"]);
    assert!(mine.contains("GPU report of ") && mine.contains("this report covers only") && mine.contains("unet_voc"), "{mine}");
    // How long ago is counted from now, at both ends.
    for (command, since, until) in [("report", "2020-02-01", "2020-01-01"), ("report", "1d", "2d"), ("what-if", "1h", "2h")] {
        let refused = served.carma(&[command, "--since", since, "--until", until]);
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("ends before it begins"), "{refused:?}");
    }
    let pdf = Path::new(&page).with_extension("pdf");
    need!(carma_testing::program("chromium"));
    report(&["--pdf", pdf.to_str().unwrap()]);
    assert!(fs::read(&pdf).unwrap().starts_with(b"%PDF-"));
}

#[test]
fn a_missing_browser_is_explained() {
    let served = Served::without_gpus();
    let output = served.carma_without_programs(&["report", "--pdf", "/nonexistent/report.pdf"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("--output FILE.html, open it, and print it from there"), "{message}");
}
