//! The messages of an ONNX file that describe its graph.

use super::super::error::{ParseError, Problem};
use super::super::graph::MOST_LAYERS;
use super::wire::{Message, Value};

#[derive(Default)]
pub(super) struct Graph<'a> {
    pub name: &'a str,
    pub nodes: Vec<Node<'a>>,
    pub initializers: Vec<Tensor<'a>>,
    pub inputs: Vec<ValueInfo<'a>>,
    /// Stored shapes of results.
    pub values: Vec<ValueInfo<'a>>,
}

#[derive(Default)]
pub(super) struct Node<'a> {
    pub name: &'a str,
    pub operator: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub attributes: Vec<Attribute<'a>>,
    /// Its byte offset in the file.
    pub byte: usize,
}

#[derive(Default)]
pub(super) struct Attribute<'a> {
    pub name: &'a str,
    pub number: Option<i64>,
    pub float: Option<f32>,
    pub numbers: Vec<i64>,
    pub text: &'a [u8],
    pub tensor: Option<Tensor<'a>>,
}

#[derive(Default)]
pub(super) struct Tensor<'a> {
    pub name: &'a str,
    pub dimensions: Vec<u64>,
    pub element: u64,
    /// Integers, if there are few of them.
    pub numbers: Vec<i64>,
    /// The value of a floating-point scalar.
    pub fraction: Option<f32>,
}

#[derive(Default)]
pub(super) struct ValueInfo<'a> {
    pub name: &'a str,
    pub element: u64,
    /// Known sizes, or the names of unknown ones.
    pub dimensions: Option<Vec<Dimension<'a>>>,
}

#[derive(Clone, Copy)]
pub(super) enum Dimension<'a> {
    Known(u64),
    Named(&'a str),
}

/// Element types of ONNX.
pub(super) const FLOATS: [u64; 4] = [1, 10, 11, 16];
pub(super) const INT64: u64 = 7;
const FLOAT: u64 = 1;

impl<'a> Graph<'a> {
    pub(super) fn of_file(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut model = Message::new(bytes);
        while let Some((field, value)) = model.next()? {
            if let (7, Value::Bytes(graph)) = (field, value) {
                return Self::read(graph);
            }
        }
        Err(Problem::Missing("it contains no graph: is this an ONNX model?".to_owned()).at_byte(bytes.len()))
    }

    fn read(mut message: Message<'a>) -> Result<Self, ParseError> {
        let mut graph = Self::default();
        while let Some((field, value)) = message.next()? {
            let Value::Bytes(inner) = value else { continue };
            if graph.nodes.len() > MOST_LAYERS || graph.initializers.len() > MOST_LAYERS || graph.values.len() > 4 * MOST_LAYERS {
                return Err(Problem::TooManyLayers(MOST_LAYERS).at_byte(inner.start()));
            }
            match field {
                1 => graph.nodes.push(Node::read(inner)?),
                2 => graph.name = inner.text()?,
                5 => graph.initializers.push(Tensor::read(inner)?),
                11 => graph.inputs.push(ValueInfo::read(inner)?),
                12 | 13 => graph.values.push(ValueInfo::read(inner)?),
                _ => {}
            }
        }
        Ok(graph)
    }
}

impl<'a> Node<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, ParseError> {
        let mut node = Self { byte: message.start(), ..Self::default() };
        while let Some((field, value)) = message.next()? {
            let Value::Bytes(inner) = value else { continue };
            match field {
                1 => node.inputs.push(inner.text()?),
                2 => node.outputs.push(inner.text()?),
                3 => node.name = inner.text()?,
                4 => node.operator = inner.text()?,
                5 => node.attributes.push(Attribute::read(inner)?),
                _ => {}
            }
        }
        Ok(node)
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.number
    }

    pub(super) fn numbers(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| attribute.numbers.as_slice())
    }
}

impl<'a> Attribute<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, ParseError> {
        let mut attribute = Self::default();
        while let Some((field, value)) = message.next()? {
            match (field, value) {
                (1, Value::Bytes(inner)) => attribute.name = inner.text()?,
                (2, Value::Float(float)) => attribute.float = Some(float),
                (3, Value::Number(number)) => attribute.number = Some(number.cast_signed()),
                (4, Value::Bytes(inner)) => attribute.text = inner.bytes(),
                (5, Value::Bytes(inner)) => attribute.tensor = Some(Tensor::read(inner)?),
                (8, Value::Number(number)) => attribute.numbers.push(number.cast_signed()),
                (8, Value::Bytes(inner)) => attribute.numbers.extend(inner.numbers()?.into_iter().map(u64::cast_signed)),
                _ => {}
            }
        }
        Ok(attribute)
    }
}

impl<'a> Tensor<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, ParseError> {
        // Shapes have few dimensions; longer lists are data, which is not needed.
        const FEW: usize = 64;
        let mut tensor = Self::default();
        let mut raw: &[u8] = &[];
        while let Some((field, value)) = message.next()? {
            match (field, value) {
                (1, Value::Number(size)) => tensor.dimensions.push(size),
                (1, Value::Bytes(inner)) => tensor.dimensions.extend(inner.numbers()?),
                (2, Value::Number(element)) => tensor.element = element,
                (7, Value::Number(number)) if tensor.numbers.len() < FEW => tensor.numbers.push(number.cast_signed()),
                (7, Value::Bytes(inner)) if inner.bytes().len() <= 10 * FEW => {
                    tensor.numbers.extend(inner.numbers()?.into_iter().map(u64::cast_signed));
                }
                (8, Value::Bytes(inner)) => tensor.name = inner.text()?,
                (9, Value::Bytes(inner)) => raw = inner.bytes(),
                _ => {}
            }
        }
        if tensor.element == INT64 && raw.len() <= 8 * FEW {
            tensor.numbers.extend(raw.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default())));
        }
        tensor.fraction = (tensor.element == FLOAT).then(|| raw.try_into().ok().map(f32::from_le_bytes)).flatten();
        Ok(tensor)
    }

    pub(super) fn elements(&self) -> u64 {
        self.dimensions.iter().fold(1, |product, &size| u64::saturating_mul(product, size))
    }
}

impl<'a> ValueInfo<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, ParseError> {
        let mut info = Self::default();
        while let Some((field, value)) = message.next()? {
            match (field, value) {
                (1, Value::Bytes(inner)) => info.name = inner.text()?,
                // A type contains a tensor type, which contains a shape, which contains dimensions.
                (2, Value::Bytes(mut kind)) => {
                    while let Some((field, value)) = kind.next()? {
                        if let (1, Value::Bytes(tensor)) = (field, value) {
                            info.tensor_type(tensor)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(info)
    }

    fn tensor_type(&mut self, mut message: Message<'a>) -> Result<(), ParseError> {
        while let Some((field, value)) = message.next()? {
            match (field, value) {
                (1, Value::Number(element)) => self.element = element,
                (2, Value::Bytes(mut shape)) => {
                    let mut dimensions = Vec::new();
                    while let Some((field, value)) = shape.next()? {
                        if let (1, Value::Bytes(mut dimension)) = (field, value) {
                            let mut size = Dimension::Named("");
                            while let Some((field, value)) = dimension.next()? {
                                match (field, value) {
                                    (1, Value::Number(known)) => size = Dimension::Known(known),
                                    (2, Value::Bytes(name)) => size = Dimension::Named(name.text()?),
                                    _ => {}
                                }
                            }
                            dimensions.push(size);
                        }
                    }
                    self.dimensions = Some(dimensions);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
