//! Sorts modules by execution: a printed model lists them in order of construction.

use super::super::error::{ParseError, Problem};
use super::super::graph::MOST_LAYERS;
use super::super::role::Role;
use super::super::tree::{Module, children};
use crate::model::LayerKind;

/// A copy of the tree with each container's children in order of execution.
pub(super) fn sort<'t>(modules: &[Module<'t>]) -> Result<Vec<Module<'t>>, ParseError> {
    let mut sorted: Vec<Module<'t>> = Vec::with_capacity(modules.len() + modules.len() / 4);
    // Modules still to copy, last first, and containers whose end is not set yet.
    let mut waiting: Vec<Step> = vec![Step::Copy(0)];
    while let Some(step) = waiting.pop() {
        match step {
            Step::Copy(place) => {
                let Some(module) = modules.get(place) else { continue };
                if sorted.len() >= MOST_LAYERS {
                    return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(module.line));
                }
                waiting.push(Step::End(sorted.len()));
                sorted.push(module.clone());
                let order = order(modules, place);
                waiting.extend(order.into_iter().rev().map(Step::Copy));
            }
            Step::End(place) => {
                let end = sorted.len();
                if let Some(module) = sorted.get_mut(place) {
                    module.end = end;
                }
            }
        }
    }
    Ok(sorted)
}

enum Step {
    Copy(usize),
    End(usize),
}

/// The children of a container in order of execution; a child that runs several times is repeated.
fn order(modules: &[Module<'_>], parent: usize) -> Vec<usize> {
    let listed: Vec<usize> = children(modules, parent).collect();
    let Some(container) = modules.get(parent) else { return listed };
    let child = |place: usize| modules.get(place);
    let by_name = |name: &str| listed.iter().copied().find(|&place| child(place).is_some_and(|module| module.name == name));
    let attends = listed
        .iter()
        .any(|&place| child(place).is_some_and(|module| module.role == Role::Attention || module.class == "MultiheadAttention"));
    if container.class == "TransformerEncoderLayer" {
        let names = ["self_attn", "dropout1", "norm1", "linear1", "dropout", "linear2", "dropout2", "norm2"];
        let known: Vec<usize> = names.iter().filter_map(|name| by_name(name)).collect();
        return if known.len() == listed.len() { known } else { listed };
    }
    if container.role == Role::SqueezeExcite {
        let names = ["avgpool", "fc1", "activation", "fc2", "scale_activation"];
        let known: Vec<usize> = names.iter().filter_map(|name| by_name(name)).collect();
        return if known.len() == listed.len() { known } else { listed };
    }
    if container.role == Role::Residual && !attends { residual(modules, &listed) } else { listed }
}

/// A residual block: its only activation runs after each normalisation, the last time after the shortcut.
fn residual(modules: &[Module<'_>], listed: &[usize]) -> Vec<usize> {
    let child = |place: usize| modules.get(place);
    let is_activation = |place: &usize| child(*place).is_some_and(|module| matches!(module.kind, LayerKind::Activation(_)));
    let is_norm = |place: usize| child(place).is_some_and(|module| matches!(module.kind, LayerKind::Normalisation(_)));
    let is_shortcut = |place: &usize| child(*place).is_some_and(|module| matches!(&*module.name, "downsample" | "shortcut" | "skip"));
    let activations: Vec<usize> = listed.iter().copied().filter(is_activation).collect();
    let shortcut = listed.iter().copied().find(is_shortcut);
    let norms = listed.iter().filter(|&&place| is_norm(place)).count();
    match (activations.as_slice(), shortcut) {
        (&[activation], _) if norms > 1 => {
            let mut order = Vec::with_capacity(listed.len() + norms);
            let mut seen = 0;
            for &place in listed.iter().filter(|place| !is_activation(place) && !is_shortcut(place)) {
                order.push(place);
                if is_norm(place) {
                    seen += 1;
                    if seen < norms {
                        order.push(activation);
                    }
                }
            }
            order.extend(shortcut);
            order.push(activation);
            order
        }
        (&[.., last], Some(shortcut)) => {
            let mut order: Vec<usize> = listed.iter().copied().filter(|&place| place != last && place != shortcut).collect();
            order.extend([shortcut, last]);
            order
        }
        _ => listed.to_vec(),
    }
}
