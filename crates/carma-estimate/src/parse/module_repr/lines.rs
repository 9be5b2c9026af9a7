//! Parses lines of a printed model into a tree of modules.

use super::super::error::{ParseError, Problem};
use super::super::graph::MOST_LAYERS;
use super::super::role::Role;
use super::super::text;
use super::super::tree::{Module, Tree};
use super::arguments;

/// The modules, and the total below them, if any.
pub(super) fn tree(text: &str) -> Result<(Vec<Module<'_>>, Option<u64>), ParseError> {
    let mut reader = Reader::default();
    let mut stated = None;
    for (number, line) in text.lines().enumerate().map(|(place, line)| (place + 1, line.trim_ascii())) {
        if reader.tree.depth() > 0 || reader.tree.modules.is_empty() {
            reader.line(line, number)?;
        } else if let Some(total) = text::labelled(line, "Total params") {
            stated = Some(total);
        }
    }
    if reader.tree.depth() > 0 {
        let line = text.lines().count().max(1);
        return Err(Problem::Missing("a closing bracket is missing: the printed model was cut short".to_owned()).at_line(line));
    }
    if reader.tree.modules.is_empty() {
        return Err(Problem::Empty.at_line(text.lines().count().max(1)));
    }
    Ok((reader.tree.modules, stated))
}

#[derive(Default)]
struct Reader<'t> {
    tree: Tree<'t>,
    /// For each open module, the parameters of its children and its repetitions.
    open: Vec<(u64, usize)>,
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t str, number: usize) -> Result<(), ParseError> {
        if let Some(after) = line.strip_prefix(')') {
            return self.close(suffix(after), number);
        }
        let named =
            line.strip_prefix('(').and_then(|rest| rest.split_once(')')).and_then(|(name, rest)| Some((name, rest.strip_prefix(": ")?)));
        let (name, module) = named.unwrap_or(("", line));
        let (times, module) = repeated(module);
        let Some((class, rest)) = module.split_once('(').filter(|(class, _)| is_class(class)) else {
            // Arguments of a container are on a separate line; anything before the model is a note.
            if let Some(open) = self.tree.innermost() {
                arguments::read(open, line);
            }
            return Ok(());
        };
        self.tree.open(name, class, number)?;
        self.open.push((0, times));
        if rest.is_empty() {
            return Ok(());
        }
        let end = rest.rfind(')').ok_or_else(|| Problem::expected(line, "a module with its closing bracket").at_line(number))?;
        if let Some(module) = self.tree.innermost() {
            arguments::read(module, rest.get(..end).unwrap_or_default());
        }
        self.close(suffix(rest.get(end + 1..).unwrap_or_default()), number)
    }

    /// Closes a module; `total` is its parameters including its children, if printed.
    fn close(&mut self, total: Option<u64>, number: usize) -> Result<(), ParseError> {
        let (of_children, times) = self.open.pop().unwrap_or((0, 1));
        let leaf = self.tree.innermost_is_leaf();
        let Some(module) = self.tree.close() else {
            return Err(Problem::expected(")", "a module: this bracket closes none").at_line(number));
        };
        if let Some(total) = total {
            module.parameters = Some(total.saturating_sub(of_children));
        } else if module.parameters.is_none() && (leaf || module.role == Role::NormalisedActivation) {
            arguments::count(module);
        }
        let whole = module.parameters.unwrap_or(0).saturating_add(of_children);
        let end = module.end;
        if let Some((sum, _)) = self.open.last_mut() {
            *sum = sum.saturating_add(whole.saturating_mul(times as u64));
        }
        if times > 1 { self.repeat(end, times, number) } else { Ok(()) }
    }

    /// Equal modules are printed once, as `(0-11): 12 x Block(`.
    fn repeat(&mut self, end: usize, times: usize, number: usize) -> Result<(), ParseError> {
        let modules = &mut self.tree.modules;
        let Some(start) =
            (0..end).rev().find(|&place| modules.get(place).is_some_and(|module| module.end == end && module.name.contains('-')))
        else {
            return Ok(());
        };
        let length = end - start;
        if length.saturating_mul(times).saturating_add(start) > MOST_LAYERS {
            return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(number));
        }
        let first = modules.get(start).and_then(|module| module.name.split('-').next()?.parse::<usize>().ok()).unwrap_or(0);
        let pattern: Vec<Module<'t>> = modules.get(start..end).unwrap_or_default().to_vec();
        modules.truncate(start);
        for copy in 0..times {
            let shift = copy * length;
            modules.extend(pattern.iter().cloned().enumerate().map(|(place, mut module)| {
                if place == 0 {
                    module.name = (first.saturating_add(copy)).to_string().into();
                }
                module.end += shift;
                module
            }));
        }
        Ok(())
    }
}

/// `, 590,592 params` after a module.
fn suffix(text: &str) -> Option<u64> {
    text::count(text.trim().strip_prefix(',')?.trim().strip_suffix("params")?.trim())
}

/// `12 x Block(` is twelve times `Block(`.
fn repeated(module: &str) -> (usize, &str) {
    // Only such lines begin with a digit; searching all lines for the `x` is slow.
    let counted = module.starts_with(|first: char| first.is_ascii_digit()).then(|| module.split_once(" x ")).flatten();
    match counted {
        Some((times, rest)) if !times.is_empty() && times.len() < 10 && times.bytes().all(|byte| byte.is_ascii_digit()) => {
            (times.parse().unwrap_or(1), rest)
        }
        _ => (1, module),
    }
}

fn is_class(class: &str) -> bool {
    !class.is_empty()
        && class.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && class.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'.')
}
