//! Our own format: short forms, hints, and that what is written is read again.

use carma_estimate::model::{Activation, ElementType, Layer, LayerKind, Model, Normalisation, Reshaping, Shape, Source, Tensor};
use carma_estimate::parse;
use carma_estimate::training::{Optimizer, Precision, Training};
use proptest::prelude::*;

use crate::parse_lab::{all, description, text};

#[test]
fn any_description_can_be_converted() {
    for (name, path) in all() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let model = description(&name, file).model;
        let written = parse::write_toml(&model);
        let again = parse::read(written.as_bytes(), None, &Training::default()).unwrap_or_else(|error| panic!("{name}/{file}: {error}"));
        assert_eq!(again.model, model, "{name}/{file}");
    }
}

#[test]
fn a_short_form_needs_no_shapes() {
    let description = text(
        "input = [3, 32, 32]\n\
         [training]\nbatch = 64\noptimizer = \"momentum\"\nprecision = \"mixed\"\ncheckpointing = true\nstack = \"2.9\"\n\
         [[layer]]\ntype = \"Conv2d\"\nchannels = 64\nkernel = 3\nstride = 2\nbias = false\n\
         [[layer]]\nname = \"norm\"\ntype = \"BatchNorm2d\"\n\
         [[layer]]\ntype = \"ReLU\"\nin_place = true\n\
         [[layer]]\ntype = \"Conv2d\"\nchannels = 64\nkernel = 3\ngroups = 64\n\
         [[layer]]\ntype = \"add\"\ninputs = [\"norm\", \"Conv2d.3\"]\n",
    );
    assert!(description.notes.iter().any(|note| note.contains("pad by half")), "{:?}", description.notes);
    assert_eq!(description.hints.batch, Some(64));
    assert_eq!((description.hints.optimizer, description.hints.precision), (Some(Optimizer::Momentum), Some(Precision::Mixed)));
    assert_eq!((description.hints.checkpointing, description.hints.stack.as_deref()), (Some(true), Some("2.9")));
}

#[test]
fn errors_in_our_own_format_name_the_line() {
    let error = |content: &str| parse::read(content.as_bytes(), None, &Training::default()).unwrap_err().to_string();
    let head = "format = \"carma-model 1\"\nname = \"a\"\n";
    assert!(error(&format!("{head}[[layer]]\ntype = \"Linear\"\n")).contains("output is missing"));
    assert!(
        error(&format!("{head}[[layer]]\ntype = \"add\"\ninputs = [\"nowhere\"]\noutput = [1, 2]\n"))
            .starts_with("line 3: \"nowhere\" is not")
    );
    assert!(error(&format!("{head}[[layer]]\ntype = \"add\"\noutputs = [1, 2]\n")).starts_with("line 5: unknown field"));
    assert!(error("format = \"carma-model 2\"\n[[layer]]\ntype = \"add\"\n").starts_with("line 1: \"carma-model 2\" is not"));
    assert!(error("batch = 0\n[[layer]]\ntype = \"add\"\n").starts_with("line 1: \"0\" is not"));
}

#[test]
fn a_described_model_is_read_as_it_was_traced() {
    let traced = "\
        format = \"carma-model 1\"\nname = \"net\"\nbatch = 4\nprecision = \"float32\"\n\
        [[layer]]\nname = \"conv1\"\ntype = \"Conv2d\"\ninputs = [\"input\"]\noutput = [4, 8, 16, 16]\nparameters = 224\nkernel = [3, 3]\n\
        stride = [2, 2]\ngroups = 1\nmodule = \"stem\"\n\
        [[layer]]\nname = \"permute\"\ntype = \"permute\"\noutput = [4, 16, 16, 8]\nview = true\n\
        [[layer]]\nname = \"reshape\"\ntype = \"reshape\"\noutput = [4, 2048]\n\
        [[layer]]\nname = \"ids\"\ntype = \"Embedding\"\ninputs = [\"input2\"]\noutput = [4, 5, 6]\nparameters = 60\ndtype = \"float16\"\n";
    let description = text(traced);
    let [conv, permute, reshape, ids] = description.model.layers.as_slice() else { panic!("four layers") };
    assert_eq!(conv.kind, LayerKind::Convolution { kernel: [3, 3], stride: [2, 2], groups: 1, transposed: false });
    assert_eq!((conv.tensors.as_slice(), conv.block.as_deref()), (&[216, 8][..], Some("stem")));
    assert_eq!(description.model.inputs[0].shape.dimensions(), [3, 32, 32]);
    assert_eq!(permute.kind, LayerKind::Reshape(Reshaping::View));
    assert_eq!(reshape.kind, LayerKind::Reshape(Reshaping::Copy), "what is not said to be a view was copied");
    assert_eq!((ids.inputs.as_slice(), ids.element), (&[Source::Input(1)][..], Some(ElementType::Float16)));
    assert_eq!((description.hints.batch, description.hints.precision), (Some(4), Some(Precision::Float32)));
}

fn kind() -> impl Strategy<Value = LayerKind> {
    let side = 1_u64..9;
    prop_oneof![
        (side.clone(), side.clone(), side.clone(), any::<bool>()).prop_map(|(height, width, groups, transposed)| LayerKind::Convolution {
            kernel: [height, width],
            stride: [width, height],
            groups,
            transposed
        }),
        prop_oneof![Just(LayerKind::Linear), Just(LayerKind::MatrixProduct), Just(LayerKind::Embedding), Just(LayerKind::MaxPool)],
        prop_oneof![Just(LayerKind::Softmax), Just(LayerKind::Add), Just(LayerKind::Multiply), Just(LayerKind::Unknown)],
        prop_oneof![Just(LayerKind::Concatenate), Just(LayerKind::Reduce), Just(LayerKind::Upsample), Just(LayerKind::AveragePool)],
        prop_oneof![Just(Reshaping::View), Just(Reshaping::Copy)].prop_map(LayerKind::Reshape),
        prop_oneof![
            Just(Normalisation::Batch),
            Just(Normalisation::Layer),
            Just(Normalisation::Group),
            Just(Normalisation::RootMeanSquare)
        ]
        .prop_map(LayerKind::Normalisation),
        prop_oneof![Just(Activation::KeepsOutput), Just(Activation::Gated), side.clone().prop_map(|kept| Activation::Composed { kept })]
            .prop_map(LayerKind::Activation),
        (0.0..1.0).prop_map(|probability| LayerKind::Dropout { probability }),
        (side.clone(), 0.0..1.0).prop_map(|(heads, dropout)| LayerKind::Attention { heads, dropout }),
        (side.clone(), side.clone(), side).prop_map(|(gates, hidden, layers)| LayerKind::Recurrent { gates, hidden, layers }),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let sizes = proptest::collection::vec(0_u64..(1 << 40), 0..5);
    (any::<bool>(), sizes).prop_map(|(batched, sizes)| if batched { Shape::batched(sizes) } else { Shape::fixed(sizes) })
}

fn element() -> impl Strategy<Value = Option<ElementType>> {
    prop_oneof![Just(None), Just(Some(ElementType::Int64)), Just(Some(ElementType::BFloat16)), Just(Some(ElementType::Bool))]
}

prop_compose! {
    /// A layer whose sources are still to be made valid.
    fn layer()(
        class in prop_oneof!["[A-Za-z0-9]{1,12}", Just("Conv2d".to_owned()), Just("permute".to_owned()), "\\PC{1,8}"],
        kind in kind(), output in shape(), element in element(), in_place in any::<bool>(),
        tensors in proptest::collection::vec(1_u64..(1 << 40), 0..3),
        block in proptest::option::of("\\PC{0,6}"),
        sources in proptest::collection::vec(any::<(bool, usize)>(), 0..4),
    ) -> (Layer, Vec<(bool, usize)>) {
        let mut layer = Layer::new("", class, kind, Vec::new(), output).with_tensors(tensors);
        (layer.element, layer.in_place, layer.block) = (element, in_place, block);
        (layer, sources)
    }
}

prop_compose! {
    fn a_model()(
        name in proptest::option::of("\\PC{1,10}"),
        inputs in proptest::collection::vec((shape(), element()), 1..4),
        layers in proptest::collection::vec(layer(), 1..12),
        stated_parameters in proptest::option::of(0_u64..(1 << 50)),
        stated_batch in proptest::option::of(1_u64..1000),
    ) -> Model {
        let inputs: Vec<Tensor> = inputs.into_iter().map(|(shape, element)| Tensor { shape, element }).collect();
        let layers = layers.into_iter().enumerate().map(|(place, (mut layer, sources))| {
            layer.name = format!("{} \"{place}\"\n", layer.class);
            let source = |(model, number): (bool, usize)| match number.checked_rem(place) {
                Some(read) if !model => Source::Layer(read),
                _ => Source::Input(number % inputs.len()),
            };
            layer.inputs = sources.into_iter().map(source).collect();
            layer
        }).collect();
        Model { name, inputs, layers, stated_parameters, stated_batch }
    }
}

proptest! {
    #[test]
    fn written_data_reads_back(model in a_model()) {
        let written = parse::write_toml(&model);
        let again = parse::read(written.as_bytes(), None, &Training::default()).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
        prop_assert_eq!(again.model, model);
    }
}
