//! `print(model)` of PyTorch: modules with their arguments, nested by brackets.

mod arguments;
mod execution_order;
pub(super) mod language;
mod lines;

use super::error::{ParseError, Problem};
use super::graph::Graph;
use super::transformer;
use super::tree::Module;
use super::wiring::{self, Naming};
use crate::model::{ElementType, LayerKind, Shape};
use crate::training::Training;

pub(super) fn read(text: &str, training: &Training) -> Result<Graph, ParseError> {
    let (modules, stated) = lines::tree(text)?;
    let modules = unwrapped(modules);
    let mut graph = Graph::new(modules.first().map(|root| root.class));
    graph.line = text.lines().count().max(1);
    graph.stated(stated, None);
    if let Some(config) = language::config(&modules, training, &mut graph) {
        transformer::build(&config, &mut graph)?;
        return Ok(graph);
    }
    let mut modules = execution_order::sort(&modules)?;
    input(&mut modules, training, &mut graph)?;
    wiring::wire(&modules, &mut graph, Naming::Path)?;
    Ok(graph)
}

/// Removes `DataParallel` and similar wrappers.
fn unwrapped(mut modules: Vec<Module<'_>>) -> Vec<Module<'_>> {
    let wraps = |module: &Module<'_>| matches!(module.class, "DataParallel" | "DistributedDataParallel" | "OptimizedModule");
    let outer = modules.iter().take_while(|module| wraps(module)).count();
    modules.drain(..outer);
    for module in &mut modules {
        module.end = module.end.saturating_sub(outer);
    }
    modules
}

/// The model's input: as given, or inferred from its first module, with a usual size.
fn input(modules: &mut [Module<'_>], training: &Training, graph: &mut Graph) -> Result<(), ParseError> {
    let words = modules.iter().any(|module| module.kind == LayerKind::Embedding);
    if words {
        let sequence = super::huggingface::sequence(training, None, graph);
        for module in modules.iter_mut().filter(|module| module.kind == LayerKind::Embedding) {
            module.output = Some(Shape::batched([sequence, module.attributes.outputs.unwrap_or(1)]));
        }
        let first = modules.iter().find(|module| reads(module));
        if first.is_some_and(|first| first.kind == LayerKind::Embedding) {
            // Embeddings add their own inputs.
            return Ok(());
        }
    }
    if let Some(given) = &training.input {
        graph.input(Shape::batched(given.as_slice()), None);
        return Ok(());
    }
    let Some(first) = modules.iter().find(|module| reads(module)) else {
        return Err(Problem::Missing("no layer with weights in it: give the input's size".to_owned()).at_line(graph.line));
    };
    let inputs = first.attributes.inputs.unwrap_or(1);
    let shape = match first.kind {
        LayerKind::Convolution { .. } if first.class.contains("1d") => vec![inputs, 1024],
        LayerKind::Convolution { .. } => {
            let side = if graph.is_named(&["Inception3", "Xception"]) { 299 } else { 224 };
            vec![inputs, side, side]
        }
        LayerKind::Recurrent { .. } => vec![super::huggingface::sequence(training, None, graph), inputs],
        _ => vec![inputs],
    };
    graph.note(&format!("input size not given: {shape:?} assumed"));
    graph.input(Shape::batched(shape), None::<ElementType>);
    Ok(())
}

/// Whether a module shows the size of its input.
fn reads(module: &Module<'_>) -> bool {
    matches!(module.kind, LayerKind::Convolution { .. } | LayerKind::Linear | LayerKind::Embedding | LayerKind::Recurrent { .. })
        && (module.attributes.inputs.is_some() || module.kind == LayerKind::Embedding)
}
