//! Names for files and anchors.

use std::collections::BTreeSet;

/// A name for a file or an anchor that is not in `taken`; it is added to it.
pub fn unique_slug(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut slug = String::new();
    for character in name.chars() {
        match character.to_ascii_lowercase() {
            plain @ ('a'..='z' | '0'..='9') => slug.push(plain),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    // Long enough to distinguish policies, short enough for every file system.
    slug.truncate(60);
    let slug = match slug.trim_end_matches('-') {
        "" => "unnamed",
        some => some,
    };
    let mut free = slug.to_owned();
    let mut next = 2;
    while !taken.insert(free.clone()) {
        free = format!("{slug}-{next}");
        next += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_unique() {
        let mut taken = BTreeSet::new();
        let slugs = ["or-magm", "EST-MAGM (oracle)", "est-magm <oracle>", "../é", ""].map(|name| unique_slug(name, &mut taken));
        assert_eq!(slugs, ["or-magm", "est-magm-oracle", "est-magm-oracle-2", "unnamed", "unnamed-2"]);
    }
}
