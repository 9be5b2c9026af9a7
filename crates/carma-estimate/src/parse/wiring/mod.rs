//! From a tree of modules to layers with edges.
//!
//! Summaries have no edges. Modules are taken in order of execution, each reading the previous one. If its parameters or its shape
//! contradict this, its source is searched among the inputs of the enclosing blocks and the recent results. At the end of a block,
//! its class determines whether branches are added, concatenated or multiplied.

mod attention;
mod bridge;
mod join;
mod leaf;
mod source;
mod weighted;

pub(super) use attention::usual_heads;

use super::error::ParseError;
use super::graph::Graph;
use super::parameters;
use super::role::Role;
use super::tree::{Module, children};
use crate::model::{Activation, Layer, LayerKind, Normalisation, Shape, Source};

/// How layers are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// Every module has a unique name.
    Own,
    /// A module's name is unique only within its parent.
    Path,
}

/// A container in progress.
struct Frame {
    module: usize,
    /// Its input.
    input: Source,
    /// The shortcut of its next sum.
    shortcut: Source,
    /// The first layer within it.
    first: usize,
    /// Whether its sum is done.
    joined: bool,
    /// Whether it is a block with attention: two sums, one before each second normalisation.
    attends: bool,
    path: usize,
    block: Option<String>,
}

pub(super) struct Wiring<'a, 't> {
    modules: &'a [Module<'t>],
    graph: &'a mut Graph,
    frames: Vec<Frame>,
    /// The default input of the next module.
    current: Source,
    naming: Naming,
    path: String,
    /// Whether channels have been moved behind height and width.
    channels_last: bool,
}

/// Wires all modules; the graph has the model's first input, if known.
pub(super) fn wire(modules: &[Module<'_>], graph: &mut Graph, naming: Naming) -> Result<(), ParseError> {
    let mut wiring =
        Wiring { modules, graph, frames: Vec::new(), current: Source::Input(0), naming, path: String::new(), channels_last: false };
    // Reserves room for some functions beside the modules.
    wiring.graph.reserve(modules.len() + modules.len() / 8);
    let mut place = 0;
    while let Some(module) = modules.get(place) {
        wiring.close_to(place)?;
        wiring.graph.line = module.line;
        place = if module.class == "MultiheadAttention" {
            wiring.multihead(place)?;
            module.end
        } else {
            if module.end > place + 1 {
                wiring.open(place)?;
            } else {
                wiring.leaf(place)?;
            }
            place + 1
        };
    }
    wiring.close_to(modules.len())
}

impl<'a, 't> Wiring<'a, 't> {
    fn module(&self, frame: &Frame) -> Option<&'a Module<'t>> {
        self.modules.get(frame.module)
    }

    /// The innermost frame and its module.
    fn innermost(&self) -> Option<(&Frame, &'a Module<'t>)> {
        let frame = self.frames.last()?;
        Some((frame, self.module(frame)?))
    }

    fn open(&mut self, place: usize) -> Result<(), ParseError> {
        let Some(module) = self.modules.get(place) else { return Ok(()) };
        if module.role == Role::NormalisedActivation {
            self.normalise(module)?;
        }
        if self.starts_branch(place) {
            self.current = self.frames.last().map_or(self.current, |frame| frame.input);
        }
        let path = self.path.len();
        if self.naming == Naming::Path && (!self.path.is_empty() || !self.frames.is_empty()) {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&module.name);
        }
        let block = self.graph.block.clone();
        if module.role.is_block() {
            self.graph.block = Some(if self.naming == Naming::Path { self.path.clone() } else { module.name.clone().into_owned() });
        }
        let attends = module.role == Role::Residual
            && children(self.modules, place)
                .filter_map(|child| self.modules.get(child))
                .any(|child| child.role == Role::Attention || child.class == "MultiheadAttention");
        let (input, first) = (self.current, self.graph.layers().len());
        self.frames.push(Frame { module: place, input, shortcut: input, first, joined: false, attends, path, block });
        Ok(())
    }

    /// Whether a child reads its parent's input instead of the previous result: residual shortcuts, branches of `GoogLeNet`.
    fn starts_branch(&self, place: usize) -> bool {
        let (Some((frame, parent)), Some(module)) = (self.innermost(), self.modules.get(place)) else { return false };
        let first = frame.module + 1 == place;
        let shortcut = matches!(&*module.name, "downsample" | "shortcut" | "skip" | "branch2");
        !first
            && match parent.role {
                Role::Residual => {
                    !frame.attends && (shortcut || (module.class == "Sequential" && matches!(parent.class, "BasicBlock" | "Bottleneck")))
                }
                Role::Branches => parent.class == "Inception",
                _ => false,
            }
    }

    fn close_to(&mut self, place: usize) -> Result<(), ParseError> {
        while let Some((_, module)) = self.innermost()
            && module.end <= place
        {
            self.finish_frame(module)?;
            if let Some(frame) = self.frames.pop() {
                self.path.truncate(frame.path);
                self.graph.block = frame.block;
            }
        }
        Ok(())
    }

    /// Converts a module to a layer with these inputs.
    fn layer(&self, module: &Module<'_>, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Layer {
        let name = if self.naming == Naming::Path && !self.path.is_empty() {
            format!("{}.{}", self.path, module.name)
        } else {
            module.name.clone().into_owned()
        };
        let tensors = parameters::tensors(module, &output, module.parameters.unwrap_or(0));
        Layer::new(name, module.class, kind, inputs, output).with_tensors(tensors)
    }

    fn push(&mut self, layer: Layer) -> Result<(), ParseError> {
        self.current = self.graph.push(layer)?;
        Ok(())
    }

    /// The shape of a source; empty if the model's input is not known.
    fn shape(&self, source: Source) -> Shape {
        self.graph.shape(source).cloned().unwrap_or_else(|| Shape::batched([]))
    }

    /// Adds an operator without a module, between the current result and the next module.
    fn function(&mut self, class: &str, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Result<(), ParseError> {
        self.current = self.graph.function(class, kind, inputs, output)?;
        Ok(())
    }

    /// The normalisation of a container that normalises first.
    fn normalise(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let kind = match module.kind {
            LayerKind::Normalisation(_) => module.kind.clone(),
            _ => LayerKind::Normalisation(Normalisation::Batch),
        };
        let output = module.output.clone().unwrap_or_else(|| self.shape(self.current));
        let layer = self.layer(module, kind, vec![self.current], output);
        self.push(layer)
    }

    /// In torchvision and timm, ReLU and similar run in place after a normalisation or convolution, unless a shortcut still needs
    /// their input.
    fn runs_in_place(&mut self, module: &Module<'_>, source: Source) -> bool {
        if let Some(written) = module.attributes.in_place {
            return written;
        }
        let usual = matches!(module.class, "ReLU" | "ReLU6" | "SiLU" | "Hardswish" | "Swish")
            && self.graph.layer(source).is_some_and(|before| {
                matches!(before.kind, LayerKind::Normalisation(_) | LayerKind::Convolution { .. } | LayerKind::Add)
                    || (before.class == "Identity" && before.inputs.iter().all(|&input| self.is_normalised(input)))
            })
            && !self
                .frames
                .iter()
                .any(|frame| frame.input == source && self.module(frame).is_some_and(|module| module.role == Role::Residual));
        if usual {
            self.graph.note("activations after a normalisation or convolution are taken to run in place, as in torchvision and timm");
        }
        usual
    }

    fn is_normalised(&self, source: Source) -> bool {
        self.graph.layer(source).is_some_and(|layer| matches!(layer.kind, LayerKind::Normalisation(_)))
    }
}

/// ReLU, for functions without a module.
const RELU: LayerKind = LayerKind::Activation(Activation::KeepsOutput);
