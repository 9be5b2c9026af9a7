//! Short lists of whole numbers that a graph computes: shapes, mostly.

use super::messages::Node;

/// Numbers in a list at most; longer ones are no shapes.
pub(super) const LONGEST: usize = 64;

/// The number at a place; a single one counts for every place.
fn at(numbers: &[i64], place: usize) -> Option<i64> {
    numbers.get(if numbers.len() == 1 { 0 } else { place }).copied()
}

/// An operator applied place by place.
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

/// One list where a third is not zero, the other where it is.
pub(super) fn chosen(condition: &[i64], yes: &[i64], no: &[i64]) -> Option<Vec<i64>> {
    (0..condition.len().max(yes.len()).max(no.len()))
        .map(|place| if at(condition, place)? != 0 { at(yes, place) } else { at(no, place) })
        .collect()
}

/// A short list of one number.
pub(super) fn filled(node: &Node<'_>, shape: &[u64]) -> Option<Vec<i64>> {
    let [length] = *shape else { return None };
    let value = node.attribute("value").and_then(|attribute| attribute.tensor.as_ref());
    // Without a value it is a zero, in four bytes, which shapes are not made of.
    let value = value.map_or(Some(0), |tensor| tensor.numbers.first().copied())?;
    (length <= LONGEST as u64).then(|| vec![value; length as usize])
}
