//! A page printed by an installed browser, with the page's print styles.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::progress::with_spinner;

/// Browsers that print without a window, by their names in `PATH`.
const BROWSERS: [&str; 7] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge"];
/// A browser that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Prints a page to a file.
pub(super) fn print(html: &str, file: &Path) -> Result<()> {
    let found = BROWSERS.into_iter().find_map(|name| carma_gpu::find_program(Path::new(name)));
    let Some(browser) = found else {
        bail!(
            "no browser to print a PDF was found (searched for {}): write the page with --output FILE.html, open it, and print it from there",
            BROWSERS.join(", ")
        )
    };
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let page = folder.path().join("report.html");
    std::fs::write(&page, html).with_context(|| format!("cannot write {}", page.display()))?;
    let printed = folder.path().join("report.pdf");
    with_spinner("printing", || run(command(&browser, folder.path(), &page, &printed)))?;
    ensure!(
        printed.exists(),
        "{} printed nothing: write the page with --output FILE.html, open it, and print it from there",
        browser.display()
    );
    // Copied, as the target may be on another disk.
    std::fs::copy(&printed, file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn command(browser: &Path, folder: &Path, page: &Path, printed: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    // Its sandbox does not work for root, and the page is our own.
    command.args(rustix::process::geteuid().is_root().then_some("--no-sandbox"));
    command.arg(format!("--user-data-dir={}", folder.join("profile").display())).arg("--no-pdf-header-footer");
    command.arg(format!("--print-to-pdf={}", printed.display())).arg(format!("file://{}", page.display()));
    // It leaves crash reports and caches outside its profile too.
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(variable, folder);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(mut command: Command) -> Result<()> {
    let browser = PathBuf::from(command.get_program());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", browser.display()))?;
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{} did not print the page ({status})", browser.display());
            return Ok(());
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            bail!("{} did not print the page within {} s", browser.display(), TIMEOUT.as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_has_its_own_profile_and_no_network_services() {
        let command = command("chromium".as_ref(), "/tmp/x".as_ref(), "/tmp/x/report.html".as_ref(), "/tmp/x/report.pdf".as_ref());
        let words: Vec<_> = command.get_args().filter_map(|word| word.to_str()).collect();
        for word in ["--headless", "--user-data-dir=/tmp/x/profile", "--print-to-pdf=/tmp/x/report.pdf", "--disable-background-networking"]
        {
            assert!(words.contains(&word), "{words:?}");
        }
        assert_eq!(words.contains(&"--no-sandbox"), rustix::process::geteuid().is_root());
        assert_eq!(words.last(), Some(&"file:///tmp/x/report.html"));
    }
}
