//! A check and its result, and the report of all of them.

use std::fmt::Write;

use carma_format::labelled;

/// An assumption, checked on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// What it is about: `driver`, `GPU 0`.
    pub(super) subject: String,
    /// The assumption.
    pub(super) assumption: String,
    pub(super) result: CheckResult,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckResult {
    /// The assumption holds, as this shows.
    Holds(String),
    /// It does not, as this shows.
    Fails(String),
    /// It cannot be checked here, for this reason.
    Unknown(String),
}

impl CheckResult {
    pub(super) const fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }

    const fn parts(&self) -> (&'static str, &String) {
        match self {
            Self::Holds(shown) => ("yes", shown),
            Self::Fails(shown) => ("NO", shown),
            Self::Unknown(reason) => ("unknown", reason),
        }
    }
}

impl Check {
    fn new(subject: impl Into<String>, assumption: impl Into<String>, result: CheckResult) -> Self {
        Self { subject: subject.into(), assumption: assumption.into(), result }
    }

    pub(super) fn held(subject: impl Into<String>, assumption: impl Into<String>, shown: impl Into<String>) -> Self {
        Self::new(subject, assumption, CheckResult::Holds(shown.into()))
    }

    pub(super) fn failed(subject: impl Into<String>, assumption: impl Into<String>, shown: impl Into<String>) -> Self {
        Self::new(subject, assumption, CheckResult::Fails(shown.into()))
    }

    pub(super) fn unknown(subject: impl Into<String>, assumption: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(subject, assumption, CheckResult::Unknown(reason.into()))
    }

    /// Holds if `holds`, and shows this either way.
    pub(super) fn of(holds: bool, subject: impl Into<String>, assumption: impl Into<String>, shown: impl Into<String>) -> Self {
        let result = if holds { CheckResult::Holds } else { CheckResult::Fails };
        Self::new(subject, assumption, result(shown.into()))
    }

    /// One line for a terminal.
    pub(super) fn line(&self) -> String {
        let (word, shown) = self.result.parts();
        labelled(word, 9, &format!("{}: {} ({shown})", self.subject, self.assumption))
    }
}

/// What a bug report needs.
#[derive(Debug)]
pub(super) struct Report {
    /// The findings of the ordinary doctor.
    pub(super) findings: Vec<String>,
    pub(super) checks: Vec<Check>,
}

impl Report {
    pub(super) fn summary(&self) -> String {
        let count = |word: &str| self.checks.iter().filter(|check| check.result.parts().0 == word).count();
        format!("{} checks: {} passed, {} failed, {} not possible here", self.checks.len(), count("yes"), count("NO"), count("unknown"))
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!("# carma doctor --full\n\ncarma {}. {}.\n\n", env!("CARGO_PKG_VERSION"), self.summary());
        let _ = writeln!(text, "| about | assumption | holds | what was seen |\n|---|---|---|---|");
        for Check { subject, assumption, result } in &self.checks {
            let (word, shown) = result.parts();
            let [subject, assumption, shown] = [subject, assumption, shown].map(|cell| cell.replace('|', "/").replace('\n', " "));
            let _ = writeln!(text, "| {subject} | {assumption} | {word} | {shown} |");
        }
        let _ = writeln!(text, "\n## Findings\n");
        for finding in &self.findings {
            let _ = writeln!(text, "- {}", finding.replace('\n', " "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_table_with_a_summary() {
        let checks = vec![
            Check::held("driver", "the GPUs can be listed", "driver 550.54.15"),
            Check::failed("GPU 0", "it answers", "a call hangs | for 2 s"),
            Check::unknown("GPU 1", "MIG instances have numbers", "MIG is off"),
        ];
        let report = Report { findings: vec!["1 GPU: 1 x A100".to_owned()], checks };
        assert_eq!(report.summary(), "3 checks: 1 passed, 1 failed, 1 not possible here");
        let text = report.markdown();
        assert!(text.contains("| GPU 0 | it answers | NO | a call hangs / for 2 s |\n") && text.ends_with("- 1 GPU: 1 x A100\n"), "{text}");
    }
}
