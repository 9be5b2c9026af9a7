//! How far a declaration of memory was off, for the user who made it.

use carma_core::MiB;
use carma_format::memory;

/// A declaration is far too high above this multiple of the use, and by at least this much.
const TOO_HIGH: (f64, MiB) = (1.6, MiB(2048));
/// It is too low if more than this was used beyond it: less is within the margin of every GPU.
const TOO_LOW: MiB = MiB(256);

/// The hint for a user who declared this much for a job that used this much at most; none if the declaration was about right. What a job used that did not
/// succeed says nothing about how much it needs.
pub(crate) fn far_off(declared: MiB, used: MiB, succeeded: bool) -> Option<String> {
    let (times, least) = TOO_HIGH;
    let wasted = used > MiB::ZERO && declared.0 as f64 > used.0 as f64 * times && declared >= used + least;
    let text = |advice: &str| Some(format!("declared {}, used {}: {advice}", memory(declared), memory(used)));
    match () {
        () if used > declared + TOO_LOW => text("declare more, or omit --mem for an estimate"),
        () if wasted && succeeded => text("with less, it may start sooner and share a GPU"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_differences_are_reported() {
        let told = |declared, used, succeeded| far_off(MiB(declared), MiB(used), succeeded);
        assert_eq!(told(20_480, 7_270, true).unwrap(), "declared 20.0 GiB, used 7.1 GiB: with less, it may start sooner and share a GPU");
        assert!(told(4096, 7270, false).unwrap().starts_with("declared 4.0 GiB, used 7.1 GiB: declare more"));
        for (declared, used, succeeded) in
            [(20_480, 7_270, false), (20_480, 0, true), (2048, 500, true), (8192, 7270, true), (8192, 8300, true)]
        {
            assert_eq!(told(declared, used, succeeded), None, "{declared} {used}");
        }
    }
}
