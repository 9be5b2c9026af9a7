//! Input that is broken or made to break: an error that says where, never a panic, never much time or memory.

use carma_estimate::parse::{self, Format, Place, Problem};
use carma_estimate::training::Training;
use proptest::prelude::*;

use crate::parse_lab::{all, bytes, check};

/// Reads whatever it is; a model that comes of it must hold together.
fn survives(content: &[u8]) {
    match parse::read(content, None, &Training::default()) {
        Ok(description) => {
            check(&description.model, "hostile");
            // What could be read can be written.
            let _ = parse::write_toml(&description.model);
        }
        Err(error) => match error.place {
            Place::Line(line) => assert!(line >= 1 && line <= content.iter().filter(|&&byte| byte == b'\n').count() + 1, "{error}"),
            Place::Byte(byte) => assert!(byte <= content.len() + 8, "{error}"),
        },
    }
}

#[test]
fn fixtures_cut_short_anywhere() {
    for (_, path) in all() {
        let content = std::fs::read(path).unwrap();
        // Enough places to cut within every kind of line, few enough for a quick test.
        for end in (0..content.len()).step_by(content.len() / 60 + 1) {
            survives(&content[..end]);
        }
    }
}

#[test]
fn fixtures_with_changed_bytes() {
    for (number, (_, path)) in all().into_iter().enumerate() {
        let content = std::fs::read(path).unwrap();
        for (round, new) in [b'9', b'(', b'[', b'\n', 0, 0xff, b'-', b'"'].into_iter().enumerate() {
            let mut changed = content.clone();
            for place in ((number + 7 * round) % 61..changed.len()).step_by(content.len() / 5 + 61) {
                changed[place] = new;
                survives(&changed);
            }
        }
    }
}

#[test]
fn huge_numbers_are_refused_or_saturate() {
    let huge = "99999999999999999999";
    let most = u64::MAX.to_string();
    for number in [huge, &most, "18446744073709551615", "9223372036854775807", "0"] {
        for (model, file) in [
            ("resnet18", "torchsummary.txt"),
            ("resnet18", "torchinfo_shallow.txt"),
            ("resnet18", "repr.txt"),
            ("bert", "config.json"),
            ("t5", "repr.txt"),
        ] {
            let content = String::from_utf8(bytes(model, file)).unwrap();
            for small in ["64", "128", "512", "2", "3", "7", "1000"] {
                survives(content.replace(small, number).as_bytes());
                survives(content.replacen(small, number, 3).as_bytes());
            }
        }
        survives(
            format!("input = [{number}, {number}]\n[[layer]]\ntype = \"Conv2d\"\nchannels = {number}\nkernel = {number}\nstride = 0\n")
                .as_bytes(),
        );
    }
}

#[test]
fn too_many_layers_are_refused() {
    let row = "Linear-1  [-1, 10]  0\n";
    let table = format!("Layer (type)  Output Shape  Param #\n{}", row.repeat(200_001));
    let refused = parse::read(table.as_bytes(), None, &Training::default()).unwrap_err();
    assert_eq!((refused.place, refused.problem), (Place::Line(200_002), Problem::TooManyLayers(200_000)));
    let config = "{\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 900000000000, \"n_head\": 1, \"vocab_size\": 10}";
    assert!(matches!(parse::read(config.as_bytes(), None, &Training::default()).unwrap_err().problem, Problem::TooManyLayers(_)));
    let repeated = "Net(\n(0-99): 100 x A(\n(0-99): 100 x B(\n(0-99): 100 x C(\n(x): Linear(in_features=1, out_features=1)\n)\n)\n)\n)\n";
    assert!(matches!(parse::read(repeated.as_bytes(), None, &Training::default()).unwrap_err().problem, Problem::TooManyLayers(_)));
}

#[test]
fn too_deep_nesting_is_refused() {
    let printed = "A(\n".to_owned() + &"(a): B(\n".repeat(100_000);
    let refused = parse::read(printed.as_bytes(), None, &Training::default()).unwrap_err();
    assert!(matches!(refused.problem, Problem::TooDeep(_)), "{refused}");
    for open in ["[", "{\"a\":", "("] {
        survives(open.repeat(100_000).as_bytes());
        survives(format!("Layer (type)  Output Shape  Param #\nLinear-1  {}  0\n", open.repeat(100_000)).as_bytes());
        survives(format!("a = {}\n[[layer]]\n", open.repeat(100_000)).as_bytes());
    }
    let tree: String = (0..3000).map(|depth| format!("{}└─A: {depth}-1  [1, 2]  --\n", "│    ".repeat(depth))).collect();
    survives(format!("Layer (type:depth-idx)  Output Shape  Param #\nNet  [1, 2]  --\n{tree}").as_bytes());
}

#[test]
fn invalid_text_is_reported_with_its_line() {
    let mut content = bytes("resnet18", "torchsummary.txt");
    let line = content.iter().take(2000).filter(|&&byte| byte == b'\n').count() + 1;
    content[2000] = 0xff;
    let refused = parse::read(&content, None, &Training::default()).unwrap_err();
    assert_eq!((refused.place, refused.problem), (Place::Line(line), Problem::NotText));
}

#[test]
fn headers_with_a_wrong_length_are_refused() {
    let header = bytes("bert", "weights.safetensors");
    for length in [0, 1, 7, header.len() as u64, u64::from(u32::MAX), 1 << 39, u64::MAX] {
        let mut lying = header.clone();
        lying[..8].copy_from_slice(&length.to_le_bytes());
        survives(&lying);
    }
    let mut long = header;
    long.extend([0; 64]);
    assert_eq!(
        parse::read(&long, None, &Training::default()).unwrap().format,
        Format::SafeTensors,
        "weights behind the header are not read"
    );
}

#[test]
fn time_does_not_grow_with_the_square_of_the_lines() {
    let rows: String = (1..=20_000).map(|row| format!("Kind{row}-{row}  [-1, {}, 3, 3]  {}\n", row % 97 + 1, row % 7)).collect();
    let start = std::time::Instant::now();
    survives(format!("Layer (type)  Output Shape  Param #\n{rows}").as_bytes());
    let blocks: String = (1..=5_000)
        .map(|row| format!("Conv2d-{row}  [-1, {}, 9, 9]  {}\nBlock-{row}  [-1, 8, 9, 9]  0\n", row % 31 + 1, row * 9))
        .collect();
    survives(format!("Layer (type)  Output Shape  Param #\n{blocks}").as_bytes());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(content in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives(&content);
    }

    #[test]
    fn random_graphs(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        // A version and a producer, as exports begin, then anything.
        survives(&[&[0x08, 0x08, 0x12, 0x01, b'p', 0x3a][..], &content].concat());
    }

    #[test]
    fn random_tables(rows in proptest::collection::vec("(Conv2d|Linear|BatchNorm2d|ReLU|BasicBlock|SqueezeExcite|InceptionE|BatchNormAct2d|Attention|MaxPool2d|Fire|Identity|Embedding|LSTM|Flatten)-[0-9]{1,2}  \\[(-1|2)(, (0|1|3|8|64|7)){0,4}\\]  [0-9]{1,6}", 1..30)) {
        survives(format!("Layer (type)  Output Shape  Param #\n{}\n", rows.join("\n")).as_bytes());
    }

    #[test]
    fn random_trees(rows in proptest::collection::vec((0_usize..5, "(Conv2d|Linear|BatchNorm2d|ReLU|BasicBlock|Sequential|InceptionB|LayerNorm|MultiheadAttention|EncoderBlock|UnetDecoderBlock|ModuleList|BertSelfAttention)", "\\[2(, (1|3|8|64|7)){0,4}\\]|--", "[0-9]{1,6}|--|\\(recursive\\)"), 1..30)) {
        let rows: String = rows.into_iter().map(|(depth, class, output, own)| format!("{}├─{class}: {depth}-1  {output}  {own}\n", "│    ".repeat(depth))).collect();
        survives(format!("Layer (type:depth-idx)  Output Shape  Param #\nNet  [2, 10]  --\n{rows}").as_bytes());
    }

    #[test]
    fn random_modules(lines in proptest::collection::vec("\\([a-z0-9]{1,3}(-[0-9])?\\): ([0-9] x )?(Conv2d|Linear|BatchNorm2d|LayerNorm|Bottleneck|Sequential|ReLU|LSTM|AdaptiveAvgPool2d|Upsample|TransformerEncoderLayer|MultiheadAttention|ModuleList)\\((\\)|3, 8, kernel_size=\\(3, 0\\), stride=0, groups=0\\)|in_features=8, out_features=0\\)|output_size=None\\)|scale_factor=1e300\\))?|\\)", 1..40)) {
        survives(format!("Net(\n{}\n)\n", lines.join("\n")).as_bytes());
    }
}
