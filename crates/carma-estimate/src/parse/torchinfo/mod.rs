//! The tree of the `torchinfo` package: modules in order of execution, with selected columns, down to some depth.

mod columns;
mod hidden_blocks;
mod language_names;

use columns::Columns;

use super::error::{ParseError, Problem};
use super::graph::Graph;
use super::tree::{Module, Tree};
use super::wiring::{self, Naming};
use super::{module_repr, text, transformer};
use crate::model::{Layer, LayerKind, Shape, Source};
use crate::training::Training;

pub(super) fn read(text: &str, training: &Training) -> Result<Graph, ParseError> {
    let table = table(text)?;
    let batch = batch(&table.rows);
    let mut modules = tree(&table, batch.unwrap_or(1))?;
    let mut graph = Graph::new(modules.first().map(|root| root.class));
    graph.line = text.lines().count().max(1);
    graph.stated(table.parameters, batch);
    if table.frozen {
        graph.note("parameters in brackets are frozen; they are counted with the others");
    }
    if language_names::assign(&mut modules) {
        let training = Training { sequence: training.sequence.or_else(|| language_names::sequence(&modules)), ..training.clone() };
        if let Some(config) = module_repr::language::config(&modules, &training, &mut graph) {
            transformer::build(&config, &mut graph)?;
            return Ok(graph);
        }
    }
    let modules = hidden_blocks::expand(modules, &mut graph)?;
    if let Some(input) = input(&modules, training, table.input_megabytes.map(|size| size / batch.unwrap_or(1) as f64)) {
        graph.input(input, None);
    }
    wiring::wire(&modules, &mut graph, Naming::Own)?;
    count_the_rest(table.parameters, &mut graph)?;
    Ok(graph)
}

/// Adds a layer for parameters that no row shows, such as those of modules printed only as repeated.
fn count_the_rest(stated: Option<u64>, graph: &mut Graph) -> Result<(), ParseError> {
    let shown = graph.layers().iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.parameters));
    let Some(rest) = stated.and_then(|stated| stated.checked_sub(shown)).filter(|&rest| rest > 0) else { return Ok(()) };
    graph.note("some modules are shown without their inside: their parameters are counted, their activations are not");
    let last = Source::Layer(graph.layers().len().saturating_sub(1));
    graph.push(Layer::new("not shown", "not shown", LayerKind::Unknown, vec![last], Shape::fixed([])).with_tensors([rest]))?;
    Ok(())
}

/// A row of the table.
struct Row<'t> {
    name: &'t str,
    class: &'t str,
    depth: usize,
    line: usize,
    kernel: Option<&'t str>,
    input: Option<Vec<u64>>,
    output: Option<Vec<u64>>,
    parameters: Option<u64>,
}

struct Table<'t> {
    rows: Vec<Row<'t>>,
    parameters: Option<u64>,
    /// For a whole batch.
    input_megabytes: Option<f64>,
    frozen: bool,
}

fn table(text: &str) -> Result<Table<'_>, ParseError> {
    let mut table = Table { rows: Vec::with_capacity(text.len() / 100), parameters: None, input_megabytes: None, frozen: false };
    let mut columns: Option<Columns> = None;
    let mut ended = false;
    for (number, line) in text.lines().enumerate().map(|(place, line)| (place + 1, line.trim_end())) {
        if line.starts_with("===") {
            ended |= !table.rows.is_empty();
        } else if line.trim_start().starts_with("Layer (type") && columns.is_none() {
            columns = Some(Columns::of_header(line.trim()));
        } else if !ended && !line.trim().is_empty() && (columns.is_some() || line.starts_with(['├', '└'])) {
            table.row(line, number, columns.get_or_insert_default())?;
        } else if let Some(parameters) = text::labelled(line, "Total params") {
            table.parameters = table.parameters.or(Some(parameters));
        } else if let Some(size) = text::megabytes(line, "Input size (MB)") {
            table.input_megabytes = table.input_megabytes.or(Some(size));
        }
    }
    if table.rows.is_empty() { Err(Problem::Empty.at_line(text.lines().count().max(1))) } else { Ok(table) }
}

impl<'t> Table<'t> {
    fn row(&mut self, line: &'t str, number: usize, columns: &Columns) -> Result<(), ParseError> {
        if self.rows.len() >= super::graph::MOST_LAYERS {
            return Err(Problem::TooManyLayers(super::graph::MOST_LAYERS).at_line(number));
        }
        let entry = line.trim_start_matches(['│', '├', '└', '─', ' ']);
        // Each level is five characters wide; the last has two.
        let prefix = line.chars().count() - entry.chars().count();
        let mut cells = columns::cells(entry);
        let name = cells.next().unwrap_or_default();
        let class = name.split([':', ' ']).next().unwrap_or_default();
        let values: Vec<&str> = cells.collect();
        if class.is_empty() || values.len() < columns.count() {
            let expected = "a module with a value for each column of the header: print the summary again, or widen its columns";
            return Err(Problem::expected(line.trim(), expected).at_line(number));
        }
        let cell = |column: Option<usize>| column.and_then(|column| values.get(column).copied()).filter(|cell| *cell != "--");
        let shape = |column: Option<usize>| cell(column).and_then(text::shape).map(|(shape, _)| shape);
        let parameters = cell(columns.parameters);
        let frozen = parameters.and_then(|cell| text::count(cell.strip_prefix('(')?.strip_suffix(')')?));
        self.frozen |= frozen.is_some();
        self.rows.push(Row {
            name,
            class,
            depth: (prefix + 3) / 5,
            line: number,
            kernel: cell(columns.kernel),
            input: shape(columns.input),
            output: shape(columns.output),
            parameters: parameters.and_then(text::count).or(frozen),
        });
        Ok(())
    }
}

/// The batch size: the most common leading dimension of outputs.
fn batch(rows: &[Row<'_>]) -> Option<u64> {
    let mut counts: Vec<(u64, usize)> = Vec::new();
    for first in rows.iter().filter_map(|row| row.output.as_ref()).filter(|output| output.len() > 1).filter_map(|output| output.first()) {
        let room = counts.len() < 64;
        match counts.iter_mut().find(|(known, _)| known == first) {
            Some((_, count)) => *count += 1,
            None if room => counts.push((*first, 1)),
            None => {}
        }
    }
    counts.into_iter().filter(|(first, _)| *first > 0).max_by_key(|(_, count)| *count).map(|(first, _)| first)
}

fn tree<'t>(table: &Table<'t>, batch: u64) -> Result<Vec<Module<'t>>, ParseError> {
    let mut tree = Tree::default();
    let shape = |dimensions: &Option<Vec<u64>>| dimensions.as_ref().map(|dimensions| Shape::written(dimensions, batch));
    for row in &table.rows {
        tree.close_to(row.depth);
        let module = tree.open(row.name, row.class, row.line)?;
        module.input = shape(&row.input);
        module.output = shape(&row.output);
        module.parameters = row.parameters;
        if matches!(module.kind, LayerKind::Convolution { .. }) {
            module.attributes.kernel = row.kernel.and_then(text::pair);
        }
    }
    tree.close_to(0);
    Ok(tree.modules)
}

/// The model's input: as given, as printed, or inferred from the first convolution or linear layer.
fn input(modules: &[Module<'_>], training: &Training, megabytes: Option<f64>) -> Option<Shape> {
    let first =
        modules.iter().enumerate().find(|(place, module)| module.end == place + 1 && module.output.is_some()).map(|(_, module)| module);
    let printed = first.and_then(|first| first.input.clone());
    if first.is_some_and(|first| first.kind == LayerKind::Embedding) {
        return None;
    }
    printed
        .or_else(|| modules.first()?.input.clone().filter(Shape::is_batched))
        .or_else(|| training.input.as_deref().map(Shape::batched))
        .or_else(|| super::torchsummary::first_input(first?, megabytes))
}
