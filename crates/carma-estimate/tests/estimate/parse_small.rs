//! Small descriptions, each for one quirk.

use carma_estimate::model::{LayerKind, Normalisation};
use carma_estimate::parse::{self, Place, Problem};
use carma_estimate::training::Training;

use crate::parse_lab::{count, text};

fn error(content: &str) -> parse::ParseError {
    parse::read(content.as_bytes(), None, &Training::default()).unwrap_err()
}

#[test]
fn functions_between_modules_follow_from_shapes() {
    let table = "\
        Layer (type)               Output Shape         Param #\n\
        Conv2d-1           [-1, 32, 26, 26]             320\n\
        Conv2d-2           [-1, 64, 24, 24]          18,496\n\
        Dropout-3           [-1, 64, 12, 12]               0\n\
        Linear-4                  [-1, 128]       1,179,776\n\
        Linear-5                   [-1, 10]           1,290\n\
        Total params: 1,199,882\n\
        Input size (MB): 0.00\n";
    let net = text(table).model;
    let classes: Vec<&str> = net.layers.iter().map(|layer| layer.class.as_str()).collect();
    assert_eq!(classes, ["Conv2d", "Conv2d", "max_pool2d", "Dropout", "flatten", "Linear", "Linear"]);
    assert_eq!(net.inputs[0].shape.dimensions(), [1, 28, 28]);
    assert_eq!(net.stated_parameters, Some(net.parameters()));
}

#[test]
fn repeated_and_recurrent_modules_of_a_printed_model() {
    let printed = "\
        Net(\n  (embed): Embedding(100, 16)\n  (rnn): LSTM(16, 32, num_layers=2, batch_first=True, bidirectional=True)\n  \
        (layers): ModuleList(\n    (0-2): 3 x Sequential(\n      (0): Linear(in_features=64, out_features=64, bias=True)\n      \
        (1): ReLU()\n    )\n  )\n  (out): Linear(in_features=64, out_features=5, bias=False)\n)\n";
    let net = text(printed).model;
    assert_eq!(count(&net, |kind| *kind == LayerKind::Linear), 4);
    let lstm = net.layers.iter().find(|layer| layer.class == "LSTM").unwrap();
    assert_eq!(lstm.kind, LayerKind::Recurrent { gates: 4, hidden: 32, layers: 4 });
    assert_eq!(lstm.parameters, 2 * 4 * 32 * (16 + 32 + 2) + 2 * 4 * 32 * (64 + 32 + 2));
    assert_eq!(lstm.output.dimensions(), [512, 64]);
    assert_eq!(net.layers.last().unwrap().name, "out");
    assert!(net.layers.iter().any(|layer| layer.name == "layers.2.0"));
}

#[test]
fn unknown_modules_are_kept_and_listed() {
    let tree = "\
        ===\nLayer (type:depth-idx)   Output Shape   Param #\n===\nNet                      [4, 10]        --\n\
        ├─Linear: 1-1            [4, 20]        220\n├─Mystery: 1-2           [4, 10]        1,234\n===\nTotal params: 1,454\n";
    let net = text(tree).model;
    assert_eq!(net.unknown_layers(), ["Mystery"]);
    assert_eq!((net.parameters(), net.stated_batch), (1_454, Some(4)));
    assert_eq!(net.inputs[0].shape.dimensions(), [10]);
}

#[test]
fn arguments_on_a_line_of_their_own_belong_to_their_container() {
    let printed = "\
        Net(\n  (conv): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n  (bn): BatchNormAct2d(\n    \
        8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True\n    (drop): Identity()\n    (act): SiLU(inplace=True)\n  )\n)\n";
    let net = text(printed).model;
    let classes: Vec<&str> = net.layers.iter().map(|layer| layer.class.as_str()).collect();
    assert_eq!(classes, ["Conv2d", "BatchNormAct2d", "Identity", "SiLU"]);
    assert_eq!(net.layers[1].kind, LayerKind::Normalisation(Normalisation::Batch));
    assert_eq!(net.layers[1].tensors, [8, 8]);
}

#[test]
fn task_files_point_to_a_summary() {
    let task = "# Xception\nconda activate torch\npython train.py\nsummaries/Xception.model\nimagenet\n64\ntraining\n2\n10978.0\n";
    let description = text(task);
    assert_eq!(description.format, parse::Format::Rad);
    assert_eq!(description.hints.summary.as_deref(), Some("summaries/Xception.model"));
    assert_eq!((description.hints.batch, description.hints.gpus), (Some(64), Some(2)));
    let wrong = error("# a\nconda activate torch\npython train.py\na.model\nimagenet\nmany\ntraining\n1\n");
    assert_eq!(wrong.to_string(), "line 6: \"many\" is not a whole number of 1 or more");
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let table = error("Layer (type)  Output Shape  Param #\nConv2d-1  [-1, 64, 112, 112]  9,408\nReLU-2  nothing\n");
    assert_eq!(table.place, Place::Line(3));
    assert!(matches!(table.problem, Problem::Expected { .. }));
    let printed = error("Net(\n  (a): Linear(in_features=2, out_features=2, bias=True)\n");
    assert!(printed.to_string().starts_with("line 2: a closing bracket is missing"), "{printed}");
    let config = error("{\"model_type\": \"bert\",\n \"hidden_size\": }");
    assert_eq!(config.place, Place::Line(2));
    let incomplete = error("{\"model_type\": \"bert\", \"hidden_size\": 768}");
    assert!(incomplete.to_string().contains("num_hidden_layers is missing"), "{incomplete}");
    let nothing = error("Dear reader,\nthis is a letter.\n");
    assert_eq!(nothing.problem, Problem::UnknownFormat);
}
