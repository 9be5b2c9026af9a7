//! Which of the failures in a log ended the program.

use super::lines::{Line, lines};
use super::patterns::{Meaning, is_handled, meaning};

/// A raised error with this many other lines after it did not end the program.
const LINES_AFTER_RAISED: usize = 50;
/// The same for an error that was only mentioned.
const LINES_AFTER_MENTIONED: usize = 20;

/// The lines of Python between an error and its consequence.
const CHAINS: [&str; 2] = [
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
];

/// A failure in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding<'a> {
    /// Its meaning.
    pub meaning: Meaning,
    /// The line.
    pub text: &'a str,
    process: &'a str,
    /// The form of the line shows that the program failed with it; otherwise the line only mentions it.
    raised: bool,
    place: usize,
}

/// The failures in a log, in order, and how many other lines there are.
#[derive(Debug, Default)]
pub(super) struct Findings<'a> {
    found: Vec<Finding<'a>>,
    ordinary: usize,
    /// Some line reports that GPU memory ran out, whether or not that was handled.
    pub short_of_memory: bool,
    /// The process that last announced the next error as a consequence of the one before.
    chained: Option<&'a str>,
}

impl<'a> Findings<'a> {
    /// Reads a plain log.
    pub(super) fn read(plain: &'a str) -> Self {
        let mut findings = Self::default();
        let mut in_traceback = false;
        for line in lines(plain) {
            findings.take(line, in_traceback);
            in_traceback = line.text.starts_with("  ");
        }
        findings
    }

    fn take(&mut self, Line { process, text }: Line<'a>, in_traceback: bool) {
        let (raised, known) = (is_raised(text, in_traceback), meaning(text));
        self.short_of_memory |= known == Some(Meaning::GpuMemory) && !text.starts_with([' ', '\t']);
        if CHAINS.contains(&text) {
            self.chained = Some(process);
            return;
        }
        if raised {
            let follows = self.chained.take() == Some(process) && self.last_of(process).is_some_and(|last| last.meaning != Meaning::Other);
            let otherwise = if follows { Meaning::Consequence } else { Meaning::Other };
            return self.found.push(Finding { meaning: known.unwrap_or(otherwise), text, process, raised, place: self.ordinary });
        }
        match (known, self.found.iter_mut().rfind(|finding| finding.process == process)) {
            (Some(meaning), Some(last)) if goes_on(last) => (last.meaning, last.text) = (meaning, text),
            // Source code in a traceback mentions errors that did not happen.
            (Some(_), _) if text.starts_with([' ', '\t']) || is_handled(text) => {}
            (Some(meaning), _) => self.found.push(Finding { meaning, text, process, raised, place: self.ordinary }),
            (None, _) => self.ordinary += usize::from(!text.starts_with([' ', '\t']) && !text.starts_with("Traceback (most recent")),
        }
    }

    fn last_of(&self, process: &str) -> Option<&Finding<'a>> {
        self.found.iter().rfind(|finding| finding.process == process)
    }

    /// The cause of the end: the program's last failure, unless that is a consequence. If several processes print, the one
    /// without a prefix leads the others; if it reports nothing, the first failure caused the others.
    fn cause(&self) -> Option<&Finding<'a>> {
        let mut last_of_each: Vec<&Finding<'a>> = Vec::new();
        for finding in self.found.iter().rev().filter(|finding| self.may_have_ended_it(finding)) {
            if last_of_each.iter().all(|other| other.process != finding.process) {
                last_of_each.push(finding);
            }
        }
        last_of_each.iter().find(|finding| finding.process.is_empty()).or_else(|| last_of_each.last()).copied()
    }

    fn may_have_ended_it(&self, finding: &Finding<'_>) -> bool {
        let after = self.ordinary - finding.place;
        let followed = || self.found.last().is_some_and(|last| last.meaning == Meaning::Consequence);
        finding.meaning != Meaning::Consequence
            && if finding.raised { after <= LINES_AFTER_RAISED || followed() } else { after <= LINES_AFTER_MENTIONED }
    }

    /// The last consequence.
    fn consequence(&self) -> Option<&Finding<'a>> {
        self.found.iter().rfind(|finding| finding.meaning == Meaning::Consequence)
    }
}

/// The cause of the end of a program with these logs: raised errors come before mentioned ones, and stderr before stdout.
pub(super) fn cause<'a>(stderr: &Findings<'a>, stdout: &Findings<'a>) -> Option<Finding<'a>> {
    let causes = [stderr.cause(), stdout.cause()];
    let raised = causes.into_iter().flatten().find(|finding| finding.raised);
    raised.or(causes[0]).or(causes[1]).or_else(|| stderr.consequence()).or_else(|| stdout.consequence()).cloned()
}

/// Whether an error's message continues in the next lines.
fn goes_on(finding: &Finding<'_>) -> bool {
    let in_many_lines = ["errors_impl", "XlaRuntimeError", "JaxRuntimeError"];
    let told = finding.text.trim_end();
    let open = matches!(finding.meaning, Meaning::Other | Meaning::Consequence);
    finding.raised && open && (told.ends_with(':') || in_many_lines.iter().any(|name| told.contains(name)))
}

/// Whether a line is the final error of a program in the form of Python or C++: `ValueError: ...`, `what():  ...`.
fn is_raised(text: &str, in_traceback: bool) -> bool {
    const FATAL: [&str; 4] = ["Segmentation fault", "Bus error", "Fatal Python error:", "terminate called without an active exception"];
    const SUFFIXES: [&str; 5] = ["Error", "Exception", "Interrupt", "Exit", "Failure"];
    if text.trim_start().starts_with("what():") || FATAL.iter().any(|start| text.starts_with(start)) {
        return true;
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '.').unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    // Ray names the class of the cause in brackets.
    let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
    let name = path.rsplit('.').next().unwrap_or(path).trim_start_matches('_');
    let a_class = name.starts_with(|letter: char| letter.is_ascii_uppercase()) && (rest.is_empty() || rest.starts_with(':'));
    a_class && (SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) || in_traceback && name != "Traceback")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &str) -> Option<(Meaning, String)> {
        let findings = Findings::read(log);
        cause(&findings, &Findings::default()).map(|finding| (finding.meaning, finding.text.to_owned()))
    }

    #[test]
    fn exceptions_are_known_by_their_form() {
        for line in [
            "ValueError: x",
            "MemoryError",
            "a.b.Oops_Error: x",
            "ray.exceptions.RayTaskError(ValueError): ray::f()",
            "  what():  CUDA",
            "Segmentation fault",
        ] {
            assert!(is_raised(line, false), "{line}");
        }
        for line in
            ["Epoch: 3", "  ValueError: x", "valueerror: x", "ValueError handled", "", ":", ".", "Traceback (most recent call last):"]
        {
            assert!(!is_raised(line, false), "{line}");
        }
        assert!(is_raised("optuna.exceptions.TrialPruned", true) && is_raised("Weird: x", true));
        assert!(!is_raised("Traceback", true));
    }

    #[test]
    fn an_error_that_was_caught_did_not_end_it() {
        let caught = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nbatch size is now 8\n";
        assert_eq!(found(caught).unwrap().0, Meaning::GpuMemory, "nothing else is told");
        assert_eq!(found(&format!("{caught}Traceback\n  x\nKeyError: 'lr'\n")).unwrap(), (Meaning::Other, "KeyError: 'lr'".into()));
        assert_eq!(found(&format!("{caught}{}", "loss 0.1\n".repeat(60))), None);
        assert_eq!(found("retry on CUDA out of memory handled\nbye\n"), None);
        assert_eq!(found(&format!("CUDA out of memory, says it\n{}", "loss 0.1\n".repeat(30))), None);
    }

    #[test]
    fn a_consequence_is_not_the_cause() {
        let lone = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ";
        assert_eq!(found(lone).unwrap().0, Meaning::Consequence);
        let log = format!("torch.cuda.OutOfMemoryError: CUDA out of memory.\n{}{lone}\n", "waiting\n".repeat(60));
        assert_eq!(found(&log).unwrap().0, Meaning::GpuMemory);
    }

    #[test]
    fn an_error_during_handling_is_not_the_cause() {
        let of = |first: &str, chain: &str| {
            found(&format!("{first}\n\n{chain}\n\nTraceback (most recent call last):\n  x\nTypeError: x\n")).unwrap().0
        };
        for chain in CHAINS {
            assert_eq!(of("torch.OutOfMemoryError: CUDA out of memory.", chain), Meaning::GpuMemory);
        }
        assert_eq!(of("torch.OutOfMemoryError: CUDA out of memory.", "going on"), Meaning::Other);
        assert_eq!(of("KeyError: 'x'", CHAINS[1]), Meaning::Other);
    }

    #[test]
    fn of_several_ranks_the_first_to_fail_counts() {
        let log = "[rank1]: RuntimeError: CUDA error: out of memory\n[rank0]: ValueError: nothing came from rank 1\n";
        assert_eq!(found(log).unwrap().0, Meaning::GpuMemory);
        // Unless their launcher reports something else.
        assert_eq!(found(&format!("{log}OSError: cannot write the report\n")).unwrap().0, Meaning::Other);
    }
}
