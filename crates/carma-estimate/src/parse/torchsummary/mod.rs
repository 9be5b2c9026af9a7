//! The table of the `torchsummary` package: modules in order of execution, each container after its children.

mod input_size;
mod spans;

use super::error::{ParseError, Problem};
use super::graph::{Graph, MOST_LAYERS};
use super::role::Role;
use super::text;
use super::tree::{Module, Tree};
use super::wiring::{self, Naming};
use crate::model::{LayerKind, Shape};
use crate::training::Training;

/// A line of the table.
pub(super) struct Row<'t> {
    /// Class and number, such as `Conv2d-1`.
    pub name: &'t str,
    pub class: &'t str,
    pub kind: LayerKind,
    pub role: Role,
    pub output: Vec<u64>,
    pub parameters: u64,
    pub line: usize,
}

/// Totals below the table.
#[derive(Default)]
pub(super) struct Totals {
    pub parameters: Option<u64>,
    pub input_megabytes: Option<f64>,
}

pub(super) fn read(text: &str, training: &Training) -> Result<Graph, ParseError> {
    let mut tree = Tree::default();
    let (mut rows, totals) = rows(text, &mut tree)?;
    let stated = rows.first().and_then(|row| row.output.first().copied()).filter(|&batch| batch > 0);
    let batch = stated.filter(|&batch| rows.iter().all(|row| row.output.first() == Some(&batch)));
    let mut graph = Graph::new(None);
    graph.line = rows.last().map_or(1, |row| row.line);
    graph.stated(totals.parameters, batch);
    if let Some(input) = input_size::infer(&rows, &totals, batch.unwrap_or(1), training.input.as_deref()) {
        if training.input.is_none() {
            graph.note(&format!("the input's size is not written: {input:?} was told from the first layer and the input's megabytes"));
        }
        graph.input(Shape::batched(input), None);
    }
    spans::build(&mut rows, &mut tree)?;
    wiring::wire(&tree.modules, &mut graph, Naming::Own)?;
    Ok(graph)
}

/// The input of a model whose first module is this one, with this many megabytes per sample.
pub(super) fn first_input(module: &Module<'_>, megabytes: Option<f64>) -> Option<Shape> {
    let output: Vec<u64> = std::iter::once(1).chain(module.output.as_ref()?.dimensions().iter().copied()).collect();
    let row = Row {
        name: "",
        class: module.class,
        kind: module.kind.clone(),
        role: module.role,
        output,
        parameters: module.parameters?,
        line: module.line,
    };
    let totals = Totals { input_megabytes: megabytes.map(|size| size * 1e6 / input_size::MEBIBYTE), ..Totals::default() };
    input_size::infer(&[row], &totals, 1, None).map(Shape::batched)
}

/// The lines of the table, and the totals below.
fn rows<'t>(text: &'t str, tree: &mut Tree<'t>) -> Result<(Vec<Row<'t>>, Totals), ParseError> {
    let mut rows: Vec<Row<'t>> = Vec::with_capacity(text.len() / 64);
    let mut totals = Totals::default();
    let mut in_table = false;
    for (number, line) in text.lines().enumerate().map(|(place, line)| (place + 1, line.trim_ascii())) {
        if line.is_empty() || line.starts_with("---") || line.starts_with("===") {
            continue;
        }
        if line.starts_with("Layer (type)") {
            in_table = true;
        } else if let Some(parameters) = text::labelled(line, "Total params") {
            totals.parameters = Some(parameters);
            in_table = false;
        } else if let Some(size) = text::megabytes(line, "Input size (MB)") {
            totals.input_megabytes = Some(size);
        } else if in_table {
            if rows.len() >= MOST_LAYERS {
                return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(number));
            }
            rows.push(row(line, number, tree)?);
        }
    }
    if rows.is_empty() { Err(Problem::Empty.at_line(text.lines().count().max(1))) } else { Ok((rows, totals)) }
}

fn row<'t>(line: &'t str, number: usize, tree: &mut Tree<'t>) -> Result<Row<'t>, ParseError> {
    let wrong =
        || Problem::expected(line, "a layer, its output shape in brackets and its parameters, such as `Conv2d-1 [-1, 64, 112, 112] 9,408`");
    let parsed = line.find('[').and_then(|bracket| {
        let name = line.get(..bracket)?.trim_ascii_end();
        let (output, rest) = text::shape(line.get(bracket..)?)?;
        let class = name.rsplit_once('-').map_or(name, |(class, _)| class);
        (!class.is_empty()).then_some((name, class, output, text::count(rest.trim_ascii())?))
    });
    let (name, class, output, parameters) = parsed.ok_or_else(|| wrong().at_line(number))?;
    let (kind, role) = tree.class(class);
    Ok(Row { name, class, kind, role, output, parameters, line: number })
}
