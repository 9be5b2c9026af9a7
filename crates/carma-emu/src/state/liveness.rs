//! Whether a process lives, and which one it is.

use std::fs;

/// When a process was started, in the kernel's clock ticks since the system's start; unset where there is none, or only its remains. A number of a process
/// is used again some day, the pair of both is not.
pub fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, brackets and blanks included: what counts follows its last bracket.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    // The driver takes everything from a process as soon as it ends, whether or not its parent has asked for it.
    (!matches!(state, "Z" | "X")).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::started;

    #[test]
    fn a_process_is_told_from_its_remains() {
        assert!(started(std::process::id()).is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while started(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "its remains are still there");
        child.wait().unwrap();
        assert_eq!(started(pid), None);
    }
}
