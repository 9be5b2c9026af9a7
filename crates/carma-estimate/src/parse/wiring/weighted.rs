//! Convolutions, linear layers and embeddings: their parameter counts indicate their inputs.

use super::super::convolution::{self, Filter};
use super::super::error::ParseError;
use super::super::output::{self, channels, rank, window_dimensions};
use super::super::role::Role;
use super::super::tree::Module;
use super::Wiring;
use crate::model::{ElementType, LayerKind, Reshaping, Shape, Source};

/// From this misfit on (grouped channels or a far source), a concatenation is more likely.
const UNUSUAL: u32 = 40;

impl Wiring<'_, '_> {
    pub(super) fn convolution(&mut self, place: usize, module: &Module<'_>, transposed: bool) -> Result<(), ParseError> {
        let rank = rank(module);
        self.pool_for_gate(module, rank)?;
        let mut found = self.find(|shape| filter_over(module, shape, rank, transposed).map(|filter| filter.oddity));
        if found.is_none_or(|(_, misfit)| misfit >= UNUSUAL)
            && let Some(joined) = self.join_skip(module, rank)?
        {
            found = Some((joined, 0));
        }
        if let Some(sibling) = self.fork(module) {
            found = Some((sibling, 0));
        }
        let mut source = if let Some((source, _)) = found { source } else { self.bridge_to(module)? };
        if self.graph.shape(source).is_none() {
            source = self.current;
        }
        if self.begins_with_mean(place, module, source) {
            let shape = self.shape(source);
            source = self.graph.function("avg_pool2d", LayerKind::AveragePool, vec![source], shape)?;
        }
        let input = self.shape(source);
        let filter = filter_over(module, &input, rank, transposed);
        let attributes = &module.attributes;
        let kernel = attributes.kernel.or(filter.map(|filter| filter.kernel)).unwrap_or([1, 1]);
        let groups = attributes.groups.or(filter.map(|filter| filter.groups)).unwrap_or(1);
        let output = module.output.clone().unwrap_or_else(|| output::of(module, &[&input]));
        let stride = attributes.stride.unwrap_or_else(|| {
            let (from, to) = (window_dimensions(&input, rank), window_dimensions(&output, rank));
            let (from, to) = if transposed { (to, from) } else { (from, to) };
            [convolution::stride(from[0], to[0]), convolution::stride(from[1], to[1])]
        });
        let kind = LayerKind::Convolution { kernel, stride, groups, transposed };
        let outputs = channels(&output, rank).unwrap_or(1);
        let mut layer = self.layer(module, kind, vec![source], output);
        if attributes.bias.or(filter.map(|filter| filter.bias)) == Some(true) && layer.parameters > outputs {
            let weight = layer.parameters - outputs;
            layer = layer.with_tensors([weight, outputs]);
        }
        self.push(layer)?;
        let patches = module.output.is_none() && self.graph.layers().len() == 1 && self.graph.is_named(&["VisionTransformer"]);
        if patches { self.class_token() } else { Ok(()) }
    }

    /// The gate of a squeeze-and-excite module begins with a global average pool, which timm computes without a module.
    fn pool_for_gate(&mut self, module: &Module<'_>, rank: usize) -> Result<(), ParseError> {
        if self.innermost().is_none_or(|(_, parent)| parent.role != Role::SqueezeExcite) {
            return Ok(());
        }
        let shape = self.shape(self.current);
        if window_dimensions(&shape, rank) != [1, 1] && module.output.as_ref().is_none_or(|to| window_dimensions(to, rank) == [1, 1]) {
            let pooled = Shape::batched([channels(&shape, rank).unwrap_or(1), 1, 1]);
            self.function("mean", LayerKind::Reduce, vec![self.current], pooled)?;
        }
        Ok(())
    }

    /// Concatenates a skip connection with the current result if that gives the channels that the parameters require.
    fn join_skip(&mut self, module: &Module<'_>, rank: usize) -> Result<Option<Source>, ParseError> {
        let shape = self.shape(self.current);
        let Some(current) = channels(&shape, rank) else { return Ok(None) };
        let needed: Vec<u64> = match (module.attributes.inputs, module.parameters, module.output.as_ref().and_then(|to| channels(to, rank)))
        {
            (Some(inputs), ..) => vec![inputs],
            (None, Some(parameters), Some(outputs)) if outputs > 0 => {
                let areas = module.attributes.kernel.map_or(vec![9, 1], |kernel| vec![kernel[0].saturating_mul(kernel[1]).max(1)]);
                let per_output = [parameters / outputs, (parameters / outputs).saturating_sub(1)];
                areas.iter().flat_map(|area| per_output.map(|each| if each % area == 0 { each / area } else { 0 })).collect()
            }
            _ => return Ok(None),
        };
        for need in needed {
            if let Some(missing) = need.checked_sub(current).filter(|&missing| missing > 0)
                && let Some(skip) = self.find_skip(missing)
            {
                let mut dimensions = shape.dimensions().to_vec();
                if let Some(first) = dimensions.first_mut() {
                    *first = need;
                }
                let inputs = vec![skip, self.current];
                return self.graph.function("cat", LayerKind::Concatenate, inputs, Shape::batched(dimensions)).map(Some);
            }
        }
        Ok(None)
    }

    /// The last two convolutions of a forked branch read the same result.
    fn fork(&self, module: &Module<'_>) -> Option<Source> {
        let forks = self.frames.iter().rev().filter_map(|frame| self.module(frame)).any(|parent| parent.role == Role::ForkedBranches);
        let before = self.graph.layers().iter().rev().find(|layer| matches!(layer.kind, LayerKind::Convolution { .. }))?;
        let thin = matches!(before.kind, LayerKind::Convolution { kernel: [1, 3] | [3, 1], .. });
        (forks && thin && module.parameters == Some(before.parameters)).then(|| before.inputs.first().copied()).flatten()
    }

    /// Whether an average pool without a module comes before this convolution: the last branch of an Inception block.
    fn begins_with_mean(&self, place: usize, module: &Module<'_>, source: Source) -> bool {
        let Some(frame) = self.frames.iter().rev().find(|frame| self.module(frame).is_some_and(|parent| parent.role.joins_branches()))
        else {
            return false;
        };
        let Some(parent) = self.module(frame) else { return false };
        let pooled = matches!(parent.role, Role::PooledBranches | Role::ForkedBranches);
        let last = self
            .modules
            .get(place + 1..parent.end)
            .is_some_and(|rest| rest.iter().all(|after| !matches!(after.kind, LayerKind::Convolution { .. })));
        pooled && last && source == frame.input && module.class == "Conv2d"
    }

    pub(super) fn linear(&mut self, place: usize, module: &Module<'_>) -> Result<(), ParseError> {
        if let Some(source) = self.projection(place)? {
            self.current = source;
        }
        let needs = linear_inputs(module);
        let attends = self.innermost().is_some_and(|(_, parent)| parent.role == Role::Attention);
        let misfit = |shape: &Shape| {
            if let Some(input) = &module.input {
                return (shape == input).then_some(0);
            }
            needs.iter().flatten().find_map(|&need| match shape.features() {
                features if features == need => Some(0),
                _ if shape.per_sample() == need => Some(1),
                features if attends && features == need.saturating_mul(3) => Some(1),
                _ if shape.dimensions().len() > 1 && shape.dimensions().first() == Some(&need) => Some(1),
                _ => None,
            })
        };
        let source = if let Some((source, _)) = self.find(misfit) { source } else { self.bridge_to(module)? };
        self.current = source;
        let shape = self.shape(source);
        let features = shape.features();
        let need = needs.iter().flatten().copied().find(|&need| misfit_of(&shape, need));
        let token = module.output.as_ref().is_some_and(|output| output.dimensions().len() + 1 == shape.dimensions().len())
            || (module.output.is_none() && shape.dimensions().len() == 2 && module.name.contains("head"));
        match need {
            Some(need) if attends && features == need.saturating_mul(3) => self.fused_attention(need)?,
            Some(need) if features != need && shape.per_sample() == need => {
                self.function("flatten", LayerKind::Reshape(Reshaping::View), vec![source], Shape::batched([need]))?;
            }
            Some(need) if features != need => self.function("mean", LayerKind::Reduce, vec![source], Shape::batched([need]))?,
            Some(need) if token => self.function("getitem", LayerKind::Reshape(Reshaping::View), vec![source], Shape::batched([need]))?,
            _ => {}
        }
        let output = module.output.clone().unwrap_or_else(|| output::of(module, &[&self.shape(self.current)]));
        let outputs = output.features();
        let mut layer = self.layer(module, LayerKind::Linear, vec![self.current], output);
        if let Some(bias) = need.and_then(|need| layer.parameters.checked_sub(need.saturating_mul(outputs)))
            && bias > 0
            && bias < layer.parameters
        {
            let weight = layer.parameters - bias;
            layer = layer.with_tensors([weight, bias]);
        }
        self.push(layer)
    }

    /// An embedding reads an integer input of the model.
    pub(super) fn embedding(&mut self, module: &Module<'_>) -> Result<(), ParseError> {
        let output = module.output.clone().unwrap_or_else(|| Shape::batched([module.attributes.outputs.unwrap_or(1)]));
        let rows = match output.dimensions() {
            [rows @ .., _] if output.is_batched() => Shape::batched(rows),
            _ => module.input.clone().unwrap_or_else(|| Shape::batched([])),
        };
        let indices = self.graph.input(rows, Some(ElementType::Int64));
        let layer = self.layer(module, LayerKind::Embedding, vec![indices], output);
        self.push(layer)
    }
}

/// Whether a linear layer over `need` features can read this shape.
fn misfit_of(shape: &Shape, need: u64) -> bool {
    let features = shape.features();
    features == need
        || shape.per_sample() == need
        || features == need.saturating_mul(3)
        || (shape.dimensions().len() > 1 && shape.dimensions().first() == Some(&need))
}

/// Possible input features of a linear layer: as written, or from its parameters with and without a bias.
fn linear_inputs(module: &Module<'_>) -> [Option<u64>; 2] {
    if module.attributes.inputs.is_some() {
        return [module.attributes.inputs, None];
    }
    let outputs = module.output.as_ref().map_or(0, Shape::features);
    match module.parameters {
        Some(parameters) if outputs > 0 && parameters > 0 => [(parameters / outputs).checked_sub(1), Some(parameters / outputs)],
        _ => [None, None],
    }
}

/// The filter of a convolution over this shape, if one fits.
fn filter_over(module: &Module<'_>, shape: &Shape, rank: usize, transposed: bool) -> Option<Filter> {
    if let Some(input) = &module.input
        && input != shape
    {
        return None;
    }
    let inputs = channels(shape, rank)?;
    if let Some(output) = &module.output {
        let (from, to) = (window_dimensions(shape, rank), window_dimensions(output, rank));
        // Padding may enlarge slightly; only a transposed convolution enlarges much.
        let enlarges = to[0] > from[0].saturating_add(2) || to[1] > from[1].saturating_add(2);
        if enlarges && !transposed {
            return None;
        }
    }
    let attributes = &module.attributes;
    if let Some(written) = attributes.inputs {
        let filter = Filter {
            kernel: attributes.kernel.unwrap_or([1, 1]),
            groups: attributes.groups.unwrap_or(1),
            bias: attributes.bias.unwrap_or(true),
            oddity: 0,
        };
        return (written == inputs).then_some(filter);
    }
    let outputs = module.output.as_ref().and_then(|output| channels(output, rank))?;
    // A transposed convolution's weight has its channel dimensions swapped, which does not change the count.
    convolution::filter(module.parameters.filter(|&parameters| parameters > 0)?, inputs, outputs, attributes.kernel, attributes.groups)
}
