//! Fills in blocks below the printed depth: well-known classes, if parameters and shapes match.

use super::super::error::{ParseError, Problem};
use super::super::graph::{Graph, MOST_LAYERS};
use super::super::parameters;
use super::super::role::Role;
use super::super::tree::{Attributes, Module};
use crate::model::{LayerKind, Shape};

/// The tree with hidden blocks filled in.
pub(super) fn expand<'t>(modules: Vec<Module<'t>>, graph: &mut Graph) -> Result<Vec<Module<'t>>, ParseError> {
    if !modules.iter().enumerate().any(|(place, module)| is_hidden(place, module)) {
        return Ok(modules);
    }
    let mut expanded: Vec<Module<'t>> = Vec::with_capacity(modules.len() * 4);
    // New index of each module, plus one for the end of the last.
    let mut moved: Vec<usize> = Vec::with_capacity(modules.len() + 1);
    let mut before: Option<Shape> = None;
    for (place, module) in modules.iter().enumerate() {
        if expanded.len() > MOST_LAYERS {
            return Err(Problem::TooManyLayers(MOST_LAYERS).at_line(module.line));
        }
        moved.push(expanded.len());
        let input = module.input.clone().or_else(|| before.clone());
        let inside = if is_hidden(place, module) { input.and_then(|input| inside(module, &input)) } else { None };
        expanded.push(module.clone());
        if let Some(inside) = inside {
            graph.note("the inside of some blocks is not shown: it was filled in where class, parameters and shapes agree");
            if let Some(block) = expanded.last_mut() {
                block.parameters = None;
            }
            append(inside, module, &mut expanded);
        } else if is_hidden(place, module) && module.kind == LayerKind::Unknown {
            graph.note("some blocks whose inside is not shown are of unknown kind: their activations are counted by their output only");
        }
        if module.end == place + 1 && module.output.is_some() {
            before.clone_from(&module.output);
        }
    }
    moved.push(expanded.len());
    // The ends of the original modules.
    for (place, module) in modules.iter().enumerate() {
        if let (Some(&now), Some(&end)) = (moved.get(place), moved.get(module.end))
            && let Some(module) = expanded.get_mut(now)
        {
            module.end = end;
        }
    }
    Ok(expanded)
}

/// A container with parameters and no children.
fn is_hidden(place: usize, module: &Module<'_>) -> bool {
    module.end == place + 1
        && module.kind == LayerKind::Unknown
        && module.class != "MultiheadAttention"
        && module.parameters.unwrap_or(0) > 0
}

/// Appends a block's contents after it.
fn append<'t>(inside: Draft, block: &Module<'t>, expanded: &mut Vec<Module<'t>>) {
    let start = expanded.len();
    for (place, mut part) in inside.parts.into_iter().enumerate() {
        part.name = format!("{}.{place}", block.name).into();
        part.line = block.line;
        part.end += start;
        expanded.push(part);
    }
}

/// Contents of a block of this class, if a usual variant has its parameters.
fn inside(block: &Module<'_>, input: &Shape) -> Option<Draft> {
    let output = block.output.as_ref()?;
    let wanted = block.parameters?;
    let ([from, ..], [to, ..]) = (input.image()?, output.image()?);
    let start = || Draft::new(input, output);
    let candidates: Vec<Draft> = match block.class {
        "BasicBlock" => vec![start().basic_block(from, to)],
        "Bottleneck" => bottlenecks(from, to, &start),
        "InvertedResidual" => (1..=10).map(|times| start().inverted_residual(from, from.saturating_mul(times), to)).collect(),
        "Sequential" => {
            let stack = |first: Draft, next: &Draft| first.repeated(next, wanted);
            let mut all = convolutions(from, to, &start);
            all.extend(stack(start().enclosed("BasicBlock", |draft| draft.basic_block(from, to)), &start_again(output, "BasicBlock", to)));
            all.extend(stack(
                start().enclosed("Bottleneck", |draft| draft.bottleneck(from, to / 4, to, 1)),
                &start_again(output, "Bottleneck", to),
            ));
            all
        }
        "DoubleConv" => vec![start().convolution(from, to, 3).normalised(to).convolution(to, to, 3).normalised(to)],
        class if class.contains("DecoderBlock") => vec![start().decoder_block(from, to, wanted)?],
        _ if matches!(block.role, Role::Wrapper | Role::WrapperWithActivation) => convolutions(from, to, &start),
        _ => return None,
    };
    candidates.into_iter().find(|draft| draft.parameters() == wanted)
}

/// A later block of a stack, whose input has its output's shape.
fn start_again(output: &Shape, class: &'static str, channels: u64) -> Draft {
    let draft = Draft::new(output, output);
    draft.enclosed(class, |draft| {
        if class == "BasicBlock" { draft.basic_block(channels, channels) } else { draft.bottleneck(channels, channels / 4, channels, 1) }
    })
}

fn bottlenecks(from: u64, to: u64, start: &impl Fn() -> Draft) -> Vec<Draft> {
    // ResNet, wide ResNet, and ResNeXt with 32 groups.
    [(to / 4, 1), (to / 2, 1), (to / 2, 32), (to, 32), (to, 64)]
        .into_iter()
        .map(|(width, groups)| start().bottleneck(from, width, to, groups))
        .collect()
}

/// A convolution with a normalisation and an activation, or with a bias and an activation.
fn convolutions(from: u64, to: u64, start: &impl Fn() -> Draft) -> Vec<Draft> {
    let sides = [1, 3, 5, 7];
    let normed = sides.iter().map(|&side| start().convolution(from, to, side).normalised(to));
    let depthwise = sides.iter().map(|&side| start().grouped(from, to, side, from).normalised(to));
    let biased = sides.iter().map(|&side| start().biased(from, to, side).activated());
    normed.chain(depthwise).chain(biased).collect()
}

/// Contents of a block under construction.
struct Draft {
    parts: Vec<Module<'static>>,
    /// Height and width of the input, until the first convolution with a stride.
    size: [u64; 2],
    /// Height and width of the output.
    smaller: [u64; 2],
}

impl Draft {
    fn new(input: &Shape, output: &Shape) -> Self {
        let size = |shape: &Shape| shape.image().map_or([1, 1], |[_, height, width]| [height, width]);
        Self { parts: Vec::new(), size: size(input), smaller: size(output) }
    }

    fn parameters(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.parameters.unwrap_or(0)))
    }

    fn part(mut self, class: &'static str, channels: u64, attributes: Attributes) -> Self {
        let place = self.parts.len();
        let output = Some(Shape::batched([channels, self.size[0], self.size[1]]));
        let mut part = Module {
            name: class.into(),
            class,
            kind: LayerKind::of_class(class),
            role: Role::of_class(class),
            end: place + 1,
            line: 0,
            input: None,
            output,
            parameters: None,
            attributes,
        };
        part.parameters = Some(parameters::by_arguments(&part, None));
        self.parts.push(part);
        self
    }

    /// A convolution without a bias; one larger than 1x1 reduces the image to its final size.
    fn grouped(mut self, inputs: u64, outputs: u64, side: u64, groups: u64) -> Self {
        if side > 1 {
            self.size = self.smaller;
        }
        let attributes = Attributes {
            inputs: Some(inputs),
            outputs: Some(outputs),
            kernel: Some([side, side]),
            groups: Some(groups),
            bias: Some(false),
            ..Attributes::default()
        };
        self.part("Conv2d", outputs, attributes)
    }

    fn convolution(self, inputs: u64, outputs: u64, side: u64) -> Self {
        self.grouped(inputs, outputs, side, 1)
    }

    fn biased(self, inputs: u64, outputs: u64, side: u64) -> Self {
        let mut draft = self.convolution(inputs, outputs, side);
        if let Some(part) = draft.parts.last_mut() {
            part.attributes.bias = Some(true);
            part.parameters = Some(parameters::by_arguments(part, None));
        }
        draft
    }

    fn norm(self, channels: u64) -> Self {
        self.part("BatchNorm2d", channels, Attributes { inputs: Some(channels), ..Attributes::default() })
    }

    fn activated(self) -> Self {
        let channels = self.parts.last().and_then(|part| part.output.as_ref()).and_then(Shape::image).map_or(1, |[channels, ..]| channels);
        self.part("ReLU", channels, Attributes { in_place: Some(true), ..Attributes::default() })
    }

    fn normalised(self, channels: u64) -> Self {
        self.norm(channels).activated()
    }

    /// The shortcut of a residual block that changes the shape.
    fn shortcut(mut self, from: u64, to: u64, changes: bool) -> Self {
        if !changes {
            return self;
        }
        self.size = self.smaller;
        self.enclosed("Sequential", |draft| draft.convolution(from, to, 1).norm(to))
    }

    fn basic_block(self, from: u64, to: u64) -> Self {
        let changes = from != to || self.size != self.smaller;
        self.convolution(from, to, 3).normalised(to).convolution(to, to, 3).norm(to).shortcut(from, to, changes).activated()
    }

    fn bottleneck(self, from: u64, width: u64, to: u64, groups: u64) -> Self {
        let changes = from != to || self.size != self.smaller;
        let middle = self.convolution(from, width, 1).normalised(width).grouped(width, width, 3, groups).normalised(width);
        middle.convolution(width, to, 1).norm(to).shortcut(from, to, changes).activated()
    }

    fn inverted_residual(self, from: u64, hidden: u64, to: u64) -> Self {
        let draft = if hidden == from { self } else { self.convolution(from, hidden, 1).normalised(hidden) };
        draft.grouped(hidden, hidden, 3, hidden).normalised(hidden).convolution(hidden, to, 1).norm(to)
    }

    /// A decoder block of a U-Net: upsampled, concatenated with the encoder's result of that size, two convolutions. The encoder's channels
    /// follow from the parameters.
    fn decoder_block(mut self, from: u64, to: u64, wanted: u64) -> Option<Self> {
        let rest = to.checked_mul(to)?.checked_mul(9)?.checked_add(to.checked_mul(4)?)?;
        let joined = wanted.checked_sub(rest)?.checked_div(to.checked_mul(9)?)?;
        self.size = self.smaller;
        let draft = self.part("Upsample", from, Attributes::default());
        Some(draft.convolution(joined, to, 3).normalised(to).convolution(to, to, 3).normalised(to))
    }

    /// Adds the parts of `build` within a container.
    fn enclosed(self, class: &'static str, build: impl FnOnce(Self) -> Self) -> Self {
        let place = self.parts.len();
        let draft = self.part(class, 1, Attributes::default());
        let mut draft = build(draft);
        let (end, output) = (draft.parts.len(), draft.parts.last().and_then(|part| part.output.clone()));
        if let Some(container) = draft.parts.get_mut(place) {
            container.parameters = None;
            container.end = end;
            container.output = output;
        }
        draft
    }

    /// This block and as many of the next as match the parameters.
    fn repeated(mut self, next: &Self, wanted: u64) -> Option<Self> {
        const MOST: u64 = 100;
        let rest = wanted.checked_sub(self.parameters())?;
        let each = next.parameters();
        if each == 0 || rest % each != 0 || rest / each > MOST {
            return None;
        }
        for _ in 0..rest / each {
            let shift = self.parts.len();
            self.parts.extend(next.parts.iter().cloned().map(|mut part| {
                part.end += shift;
                part
            }));
        }
        Some(self)
    }
}
