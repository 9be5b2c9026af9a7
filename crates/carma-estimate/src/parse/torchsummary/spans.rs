//! Finds the children of each container: a container is listed after them, and the table does not show where they begin.

use super::super::error::ParseError;
use super::super::role::Role;
use super::super::tree::Tree;
use super::Row;
use crate::model::{LayerKind, Reshaping, Shape};

/// A container and its rows, as half-open range; the container's own row is at `end`.
struct Span {
    start: usize,
    end: usize,
}

/// Maximum number of distinct classes; real tables have a few, and a hostile one must not take quadratic time.
const MOST_CLASSES: usize = 64;

/// Fills the tree with the rows, containers before their children.
pub(super) fn build<'t>(rows: &mut [Row<'t>], tree: &mut Tree<'t>) -> Result<(), ParseError> {
    let mut spans = spans(rows);
    tree.modules.reserve(rows.len());
    // Outer containers open first.
    spans.sort_unstable_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut spans = spans.into_iter().peekable();
    let mut open: Vec<usize> = Vec::new();
    for place in 0..rows.len() {
        while let Some(span) = spans.next_if(|span| span.start == place) {
            // Skips containers that overlap instead of nesting: their start was a guess.
            if open.iter().all(|&end| span.end <= end)
                && let Some(container) = rows.get_mut(span.end)
            {
                enter(container, tree)?;
                open.push(span.end);
            }
        }
        if open.last() == Some(&place) {
            open.pop();
            tree.close();
        } else if let Some(row) = rows.get_mut(place)
            && (!is_container(row) || row.parameters > 0)
        {
            enter(row, tree)?;
            tree.close();
        }
    }
    Ok(())
}

/// Opens a row's module, and moves the row's shape into it.
fn enter<'t>(row: &mut Row<'t>, tree: &mut Tree<'t>) -> Result<(), ParseError> {
    let module = tree.open_known(row.name, row.class, (row.kind.clone(), row.role), row.line)?;
    let mut output = std::mem::take(&mut row.output);
    if !output.is_empty() {
        output.remove(0);
    }
    module.output = Some(Shape::batched(output));
    module.parameters = Some(row.parameters);
    Ok(())
}

fn is_container(row: &Row<'_>) -> bool {
    row.kind == LayerKind::Unknown || row.role == Role::NormalisedActivation
}

/// Where each container begins.
fn spans(rows: &[Row<'_>]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut blocks: Vec<Span> = Vec::new();
    // Classes directly after a block contain it, and need no separate frame.
    let mut outer: Vec<&str> = Vec::new();
    let mut container_before = 0;
    for (place, row) in rows.iter().enumerate() {
        if !is_container(row) {
            continue;
        }
        // It has its own weights and shape: more likely a layer of unknown kind than a container.
        let before = place.checked_sub(1).and_then(|before| rows.get(before));
        if row.role == Role::Plain && row.parameters > 0 && before.is_some_and(|before| before.output != row.output) {
            continue;
        }
        let start = match row.role {
            Role::NormalisedActivation => gathered(rows, place, 2, |row| {
                matches!(row.kind, LayerKind::Activation(_) | LayerKind::Dropout { .. } | LayerKind::Reshape(Reshaping::View))
            }),
            Role::SqueezeExcite => gate(rows, place),
            Role::Wrapper | Role::WrapperWithActivation | Role::Attention => {
                let weighted = |row: &Row<'_>| matches!(row.kind, LayerKind::Convolution { .. } | LayerKind::Linear);
                // A wrapper of one weighted layer begins with it; attention and feed-forward blocks have two.
                let count = if row.role == Role::WrapperWithActivation { 1 } else { 2 };
                nth_before(rows, place, container_before, count, weighted).unwrap_or(place)
            }
            _ => {
                let last = blocks.last().map_or(0, |block| block.end + 1);
                if last == place || outer.contains(&row.class) {
                    if outer.len() < MOST_CLASSES && !outer.contains(&row.class) {
                        outer.push(row.class);
                    }
                    container_before = place + 1;
                    continue;
                }
                blocks.push(Span { start: last, end: place });
                container_before = place + 1;
                continue;
            }
        };
        container_before = place + 1;
        if start < place {
            spans.push(Span { start, end: place });
        }
    }
    align(rows, &mut blocks);
    spans.extend(blocks);
    spans
}

/// Up to `most` matching rows directly before an index.
fn gathered(rows: &[Row<'_>], place: usize, most: usize, sort: impl Fn(&Row<'_>) -> bool) -> usize {
    let before = rows.get(..place).unwrap_or_default();
    place - before.iter().rev().take(most).take_while(|row| sort(row)).count()
}

/// Index of the `count`-th matching row before an index, or the farthest one, not before `first`.
fn nth_before(rows: &[Row<'_>], place: usize, first: usize, count: usize, sort: impl Fn(&Row<'_>) -> bool) -> Option<usize> {
    (first..place).rev().filter(|&row| rows.get(row).is_some_and(&sort)).take(count).last()
}

/// A gate has two weighted layers, and possibly an average pool before them.
fn gate(rows: &[Row<'_>], place: usize) -> usize {
    let weighted = |row: &Row<'_>| matches!(row.kind, LayerKind::Convolution { .. } | LayerKind::Linear);
    let start = nth_before(rows, place, 0, 2, weighted).unwrap_or(place);
    match start.checked_sub(1) {
        Some(before) if rows.get(before).is_some_and(|row| row.kind == LayerKind::AveragePool) => before,
        _ => start,
    }
}

/// The first block also gets the layers before it, and others get layers between blocks. Blocks of one class begin alike: each is cut
/// to the start of the shortest of its class.
fn align(rows: &[Row<'_>], blocks: &mut [Span]) {
    // Comparing all starts with all blocks would take quadratic time on a hostile table.
    const LONGEST: usize = 512;
    let classes = |start: usize, end: usize| rows.get(start..end).unwrap_or_default();
    let mut templates: Vec<(&str, usize, usize)> = Vec::new();
    for block in &*blocks {
        let Some(class) = rows.get(block.end).map(|row| row.class) else { continue };
        let room = templates.len() < MOST_CLASSES;
        match templates.iter_mut().find(|(known, ..)| *known == class) {
            Some((_, start, end)) if block.end - block.start < *end - *start => (*start, *end) = (block.start, block.end),
            None if room => templates.push((class, block.start, block.end)),
            _ => {}
        }
    }
    for block in blocks {
        let Some(&(_, from, to)) = rows.get(block.end).and_then(|row| templates.iter().find(|(known, ..)| *known == row.class)) else {
            continue;
        };
        if block.end - block.start <= to - from || block.end - block.start > LONGEST {
            continue;
        }
        let template = classes(from, to);
        let alike = |start: usize| classes(start, block.end).iter().zip(template).take_while(|(a, b)| a.class == b.class).count();
        let best = (block.start..block.end).map(|start| (alike(start), start)).max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        if let Some((matching, start)) = best
            && matching > 2
        {
            block.start = start;
        }
    }
}
