//! Numbers, shapes and columns of printed summaries.

/// Parses all of `text` as a count such as `590,592`.
pub(super) fn count(text: &str) -> Option<u64> {
    let mut number: u64 = 0;
    let mut digits = 0;
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                digits += 1;
            }
            b',' | b'_' if digits > 0 => {}
            _ => return None,
        }
    }
    (digits > 0).then_some(number)
}

/// The count after `label` on a line, such as `Total params: 11,689,512`.
pub(super) fn labelled(line: &str, label: &str) -> Option<u64> {
    count(line.trim().strip_prefix(label)?.trim_start_matches(':').trim())
}

/// The number of MB after `label`.
pub(super) fn megabytes(line: &str, label: &str) -> Option<f64> {
    line.trim().strip_prefix(label)?.trim_start_matches(':').trim().replace(',', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// Dimensions such as `[-1, 64, 112, 112]` at the start of `text`, and the rest. `-1` becomes 0. For a list of shapes, the first.
pub(super) fn shape(text: &str) -> Option<(Vec<u64>, &str)> {
    let open = text.strip_prefix(['[', '('])?;
    if open.starts_with(['[', '(']) {
        let (first, rest) = shape(open_inner(open)?)?;
        let end = matching_end(rest)?;
        return Some((first, rest.get(end + 1..)?));
    }
    let end = open.find([']', ')'])?;
    let mut dimensions = Vec::with_capacity(4);
    for part in open.get(..end)?.split(',').map(str::trim_ascii).filter(|part| !part.is_empty()) {
        dimensions.push(if part == "-1" { 0 } else { count(part)? });
    }
    Some((dimensions, open.get(end + 1..)?))
}

/// Opens nested lists iteratively, because recursion depth would depend on the input.
fn open_inner(text: &str) -> Option<&str> {
    let inner = text.trim_start_matches(['[', '(']);
    text.get(text.len() - inner.len() - 1..)
}

/// Index of the last closing bracket.
fn matching_end(text: &str) -> Option<usize> {
    text.rfind([']', ')'])
}

/// One or two numbers: `3`, `(3, 3)`, `[3, 3]`, `(3,)`; of three, the first is folded into the height.
pub(super) fn pair(text: &str) -> Option<[u64; 2]> {
    let text = text.trim();
    if let Some(side) = count(text) {
        return Some([side, side]);
    }
    match *shape(text)?.0.as_slice() {
        [length] => Some([1, length]),
        [height, width] => Some([height, width]),
        [depth, height, width] => Some([depth.checked_mul(height)?, width]),
        _ => None,
    }
}
