//! Numbers in lines of text.

/// A number at the beginning of a text, with `,` between thousands and `k`, `M` or `G` after it, and what follows.
pub(super) fn leading(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | ','))).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches([',', '.']);
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let rest = &text[digits.len()..];
    let scaled = [('k', 1e3), ('M', 1e6), ('G', 1e9)].iter().find_map(|(letter, scale)| Some((scale, rest.strip_prefix(*letter)?)));
    Some(scaled.map_or((number, rest), |(scale, rest)| (number * scale, rest)))
}

/// `3/10` or `3 / 10` at the beginning of a text, and what follows.
pub(super) fn fraction(text: &str) -> Option<(f64, f64, &str)> {
    let (part, rest) = leading(text)?;
    let (whole, rest) = leading(rest.trim_start().strip_prefix('/')?.trim_start())?;
    (whole > 0.0 && part <= whole).then_some((part, whole, rest))
}

/// What follows a word that stands for itself, and the marks after it: `Epoch: [3` gives `3`.
pub(super) fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(found) = text[from..].find(word) {
        let (start, end) = (from + found, from + found + word.len());
        let alone = !text[..start].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let rest = text[end..].strip_prefix('s').unwrap_or(&text[end..]);
        if alone && !rest.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
            return Some(rest.trim_start_matches([' ', ':', '=', '[', '(', '#', '\'', '"']));
        }
        from = end;
    }
    None
}
