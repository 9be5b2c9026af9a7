//! Trees of modules, as listed by summaries and `print(model)`; shared by the text formats.

use std::borrow::Cow;

use super::error::{ParseError, Problem};
use super::graph::MOST_LAYERS;
use super::role::Role;
use crate::model::{LayerKind, Shape};

/// Maximum nesting depth.
pub(super) const DEEPEST: usize = 64;

/// A module of a tree. The tree is a list in which children follow their parent, so that deep nesting needs no recursion.
#[derive(Debug, Clone)]
pub(super) struct Module<'t> {
    /// Its name in its parent or in the summary.
    pub name: Cow<'t, str>,
    pub class: &'t str,
    pub kind: LayerKind,
    pub role: Role,
    /// The index after its last descendant.
    pub end: usize,
    pub line: usize,
    pub input: Option<Shape>,
    pub output: Option<Shape>,
    /// Its own parameters, if known.
    pub parameters: Option<u64>,
    pub attributes: Attributes,
}

/// Printed arguments of a module.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Attributes {
    /// Input channels or features.
    pub inputs: Option<u64>,
    /// Output channels or features.
    pub outputs: Option<u64>,
    pub kernel: Option<[u64; 2]>,
    pub stride: Option<[u64; 2]>,
    pub padding: Option<[u64; 2]>,
    pub dilation: Option<[u64; 2]>,
    pub output_size: Option<[u64; 2]>,
    pub groups: Option<u64>,
    pub layers: Option<u64>,
    pub heads: Option<u64>,
    pub bias: Option<bool>,
    pub in_place: Option<bool>,
    pub bidirectional: bool,
    pub round_up: bool,
    pub scale: Option<f64>,
    pub probability: Option<f64>,
}

/// A tree under construction.
#[derive(Default)]
pub(super) struct Tree<'t> {
    pub modules: Vec<Module<'t>>,
    open: Vec<usize>,
    /// Cache of known classes, so that each is looked up once.
    classes: Vec<(&'t str, LayerKind, Role)>,
}

impl<'t> Tree<'t> {
    /// The kind and role of a class.
    pub(super) fn class(&mut self, class: &'t str) -> (LayerKind, Role) {
        // Most summaries have a dozen classes; thousands, as in a hostile file, are not cached.
        const REMEMBERED: usize = 64;
        if let Some((_, kind, role)) = self.classes.iter().find(|(known, ..)| *known == class) {
            return (kind.clone(), *role);
        }
        // Hugging Face's `Conv1D` (capital D) is a linear layer.
        let kind = if class == "Conv1D" { LayerKind::Linear } else { LayerKind::of_class(class) };
        let role = Role::of_class(class);
        if self.classes.len() < REMEMBERED {
            self.classes.push((class, kind.clone(), role));
        }
        (kind, role)
    }

    /// Opens a module within the open ones, and returns it for completion.
    pub(super) fn open(&mut self, name: impl Into<Cow<'t, str>>, class: &'t str, line: usize) -> Result<&mut Module<'t>, ParseError> {
        let known = self.class(class);
        self.open_known(name, class, known, line)
    }

    /// The same for a known class.
    pub(super) fn open_known(
        &mut self,
        name: impl Into<Cow<'t, str>>,
        class: &'t str,
        (kind, role): (LayerKind, Role),
        line: usize,
    ) -> Result<&mut Module<'t>, ParseError> {
        if self.open.len() >= DEEPEST {
            return Err(Problem::TooDeep(DEEPEST).at_line(line));
        }
        if self.modules.len() >= MOST_LAYERS {
            return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(line));
        }
        let place = self.modules.len();
        self.open.push(place);
        self.modules.push(Module {
            name: name.into(),
            class,
            kind,
            role,
            end: place + 1,
            line,
            input: None,
            output: None,
            parameters: None,
            attributes: Attributes::default(),
        });
        self.modules.last_mut().ok_or_else(|| Problem::Empty.at_line(line))
    }

    /// Closes the innermost module, and returns it.
    pub(super) fn close(&mut self) -> Option<&mut Module<'t>> {
        let end = self.modules.len();
        let place = self.open.pop()?;
        let module = self.modules.get_mut(place)?;
        module.end = end;
        Some(module)
    }

    /// Closes modules until `depth` are open.
    pub(super) fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            self.close();
        }
    }

    /// The innermost open module.
    pub(super) fn innermost(&mut self) -> Option<&mut Module<'t>> {
        self.modules.get_mut(*self.open.last()?)
    }

    /// Whether the innermost module has no children so far.
    pub(super) fn innermost_is_leaf(&self) -> bool {
        self.open.last().is_some_and(|&place| place + 1 == self.modules.len())
    }

    /// Number of open modules.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }
}

/// Indices of the children of the module at `parent`.
pub(super) fn children<'a>(modules: &'a [Module<'_>], parent: usize) -> impl Iterator<Item = usize> + 'a {
    let end = modules.get(parent).map_or(parent, |module| module.end);
    let mut next = parent + 1;
    std::iter::from_fn(move || {
        let child = next;
        let module = modules.get(child).filter(|_| child < end)?;
        next = module.end.max(child + 1);
        Some(child)
    })
}
