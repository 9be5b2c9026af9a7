//! Short integer lists that a graph computes, mostly shapes.

use super::messages::Node;

/// Maximum length of a list; longer ones are not shapes.
pub(super) const LONGEST: usize = 64;

/// The number at an index; a single number is broadcast.
fn at(numbers: &[i64], place: usize) -> Option<i64> {
    numbers.get(if numbers.len() == 1 { 0 } else { place }).copied()
}

/// Applies an operator elementwise.
pub(super) fn arithmetic(operator: &str, left: &[i64], right: &[i64]) -> Option<Vec<i64>> {
    (0..left.len().max(right.len()))
        .map(|place| {
            let (a, b) = (at(left, place)?, at(right, place)?);
            match operator {
                "Add" => a.checked_add(b),
                "Sub" => a.checked_sub(b),
                "Mul" => a.checked_mul(b),
                "Div" => a.checked_div(b),
                "Mod" => a.checked_rem_euclid(b),
                "Equal" => Some(i64::from(a == b)),
                _ => None,
            }
        })
        .collect()
}

/// Selects elementwise by a condition.
pub(super) fn chosen(condition: &[i64], yes: &[i64], no: &[i64]) -> Option<Vec<i64>> {
    (0..condition.len().max(yes.len()).max(no.len()))
        .map(|place| if at(condition, place)? != 0 { at(yes, place) } else { at(no, place) })
        .collect()
}

/// A short list filled with one number.
pub(super) fn filled(node: &Node<'_>, shape: &[u64]) -> Option<Vec<i64>> {
    let [length] = *shape else { return None };
    let value = node.attribute("value").and_then(|attribute| attribute.tensor.as_ref());
    // The default value is a 4-byte zero, which is not used in shapes.
    let value = value.map_or(Some(0), |tensor| tensor.numbers.first().copied())?;
    (length <= LONGEST as u64).then(|| vec![value; length as usize])
}
