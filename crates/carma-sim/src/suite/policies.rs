//! The policies that the standard comparison compares with.

/// Policies that were published before CARMA's own, in our default rules and in the rules of both publications, with every knowledge of
/// memory.
pub fn published_policies() -> Vec<String> {
    let forms = ["", "est-", "or-"];
    let rules = ["", "/paper", "/aegis"];
    let named = |policy: &'static str| forms.into_iter().flat_map(move |form| rules.map(move |rules| format!("{form}{policy}{rules}")));
    let mapping = ["rr", "ff", "bf", "magm", "lug"].into_iter().flat_map(named);
    mapping.chain(["horus", "lucid"].map(str::to_owned)).collect()
}

/// CARMA's own policy: the default first, then its other aims.
pub const OWN_POLICIES: [&str; 3] = ["carma", "carma/aim=throughput", "carma/aim=response"];

/// The rules of the published system: with a floor for all jobs, and with estimates.
pub const PROTOTYPE: [&str; 2] = ["or-magm/paper", "magm/paper"];

/// Whether a policy is CARMA's own, or an order that a search found for it.
pub(super) fn is_own(name: &str) -> bool {
    name == "carma" || name.starts_with("carma/") || name.starts_with("best order")
}
