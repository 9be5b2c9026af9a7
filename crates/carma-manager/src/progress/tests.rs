use proptest::prelude::*;

use super::*;

fn done_with(epochs: Option<f64>, output: &str) -> Option<f64> {
    let mut progress = OutputProgress::new(epochs);
    progress.read(LogStream::Stderr, output.as_bytes());
    progress.read(LogStream::Stderr, b"\n");
    progress.done().map(|share| (share * 1e4).round() / 1e4)
}

fn done(output: &str) -> Option<f64> {
    done_with(None, output)
}

#[test]
fn tqdm() {
    for (output, share) in [
        ("  5%|▌         | 500/10000 [01:00<19:00,  8.33it/s]", Some(0.05)),
        ("\r 10%|#         | 1/10\r 20%|##        | 2/10 [00:02<00:08,  1.00s/it]", Some(0.2)),
        ("\u{1b}[32mtraining\u{1b}[0m:  45%|████▌     | 45/100 [00:12<00:15, 3.6it/s, loss=0.3]", Some(0.45)),
        ("steps:  25%|██▌       | 2.50k/10.0k [00:12<00:36, 207it/s]", Some(0.25)),
        ("Loading checkpoint shards: 100%|██████████| 3/3 [00:05<00:00,  1.9s/it]", None),
        ("model.safetensors:  30%|███       | 300M/1.00G [00:05<00:10, 60MB/s]", None),
        ("12it [00:03,  3.9it/s]", None),
        ("100%|██████████| 60000/60000 [00:03<00:00]\n  3%|▎         | 3/100 [00:12<06:00]", Some(0.03)),
        ("100%|██████████| 100/100 [00:03<00:00]", Some(1.0)),
    ] {
        assert_eq!(done(output), share, "{output}");
    }
}

#[test]
fn nested_bars_count_from_the_outermost() {
    let outer = |done: u32| format!("\r {}%|#  | {done}/10 [00:30<04:30]", done * 10);
    let inner = |done: u32| format!("\r\u{1b}[A {done}%|#  | {done}/100 [00:01<00:02]\n");
    assert_eq!(done(&format!("{}{}", outer(0), inner(50))), Some(0.05));
    assert_eq!(done(&format!("{}{}{}{}{}", outer(0), inner(50), inner(100), outer(1), inner(20))), Some(0.12));
    assert_eq!(done(&format!("{}{}", inner(100), inner(20))), None, "the second of an unknown number");
    let epochs = "Epochs:  20%|██        | 2/10 [01:00<04:00, 30.0s/epoch]\rTrain:  50%|█████     | 20/40 [00:10<00:10]";
    assert_eq!(done(epochs), Some(0.25));
    let evaluated =
        " 50%|█████     | 500/1000 [01:00<01:00]\n\r 10%|█         | 5/50 [00:01<00:09]\r 52%|█████▏    | 520/1000 [01:10<01:05]";
    assert_eq!(done(evaluated), Some(0.52), "bars of evaluations come and go");
}

#[test]
fn hf_trainer() {
    let logged = "***** Running training *****\n  Num examples = 1,000\n  Num Epochs = 3\n{'loss': 0.41, 'grad_norm': 2.1, 'learning_rate': 5e-05, 'epoch': 1.5}";
    assert_eq!(done(logged), Some(0.5));
    assert_eq!(done("{'loss': 0.41, 'epoch': 1.5}"), None, "of how many?");
    assert_eq!(done_with(Some(6.0), "{'loss': '0.41', 'epoch': '1.5'}"), Some(0.25));
}

#[test]
fn lightning() {
    let line = "Epoch 2:  45%|████▌     | 450/1000 [00:12<00:15, 36.1it/s, v_num=0]";
    assert_eq!(done(line), None, "of how many?");
    assert_eq!(done_with(Some(10.0), &format!("Epoch 0: 100%|██████████| 1000/1000 [00:30<00:00]\n{line}")), Some(0.245));
    assert_eq!(done("Epoch 0/9:  50%|█████     | 50/100 [00:10<00:10]"), Some(0.05));
    assert_eq!(done("Epoch 3/9 ━━━━━━━━━━╸━━━━━━━━━ 50/100 0:00:12 • 0:00:15 36.10it/s v_num: 0.000"), Some(0.35));
    let validated =
        "Epoch 3/9 ━━━━━━━━━━ 100/100 0:00:12 • 0:00:00 36.10it/s\nValidation DataLoader 0:  10%|█         | 1/10 [00:00<00:01]";
    assert_eq!(done(validated), Some(0.4));
}

#[test]
fn keras() {
    assert_eq!(done("Epoch 1/10"), Some(0.0));
    assert_eq!(done("Epoch 3/10\n\r  50/100 [======>.......] - ETA: 5s - loss: 0.4123"), Some(0.25));
    assert_eq!(
        done(
            "Epoch 3/10\n\u{8}\u{8}\u{8}\r\u{1b}[1m 50/100\u{1b}[0m \u{1b}[32m━━━━━━━━━━\u{1b}[0m\u{1b}[37m━━━━━━━━━━\u{1b}[0m \u{1b}[1m5s\u{1b}[0m 3ms/step"
        ),
        Some(0.25)
    );
    assert_eq!(done("Epoch 3/10\n100/100 [==============] - 6s 3ms/step - loss: 0.4\nEpoch 4/10"), Some(0.3));
}

#[test]
fn scripts_of_their_own() {
    for (line, share) in [
        ("epoch 1/2  step 100/1000  loss 4.4250  5.00 steps/s", Some(0.05)),
        ("Epoch [3/10], Step [100/200], Loss: 0.5", Some(0.25)),
        ("Epoch 3/10, Loss: 0.51", Some(0.3)),
        (" iteration      100/  500000 | consumed samples: 12800", Some(0.0002)),
        ("Step 30 / 120: loss 0.3", Some(0.25)),
        ("Epoch: [3][ 100/5005]  Time 0.2 (0.3)", None),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.1", None),
        ("epochs took 3/10 of the time", None),
        ("accuracy 97/100", None),
        ("2026/11/18 20:00:01 begin", None),
    ] {
        assert_eq!(done(line), share, "{line}");
    }
    assert_eq!(done_with(Some(10.0), "Epoch: [0][ 0/100]\nEpoch: [3][ 50/100]  Time 0.2"), Some(0.35));
}

#[test]
fn standard_output_and_standard_error_are_read_together() {
    let mut progress = OutputProgress::default();
    progress.read(LogStream::Stdout, b"Epoch 3/10\nand a li");
    progress.read(LogStream::Stderr, b"\r 50%|#####     | 20/40 [00:10<00:10]\r");
    progress.read(LogStream::Stdout, b"ne\n");
    assert_eq!(progress.done(), Some(0.25));
}

proptest! {
    #[test]
    fn any_output_in_any_pieces_gives_the_same_progress(bytes in proptest::collection::vec(any::<u8>(), 0..600), cut in 0_usize..600) {
        let (mut whole, mut pieces) = (OutputProgress::default(), OutputProgress::default());
        let cut = cut.min(bytes.len());
        whole.read(LogStream::Stdout, &bytes);
        pieces.read(LogStream::Stdout, &bytes[..cut]);
        pieces.read(LogStream::Stdout, &bytes[cut..]);
        prop_assert_eq!(whole.done(), pieces.done());
        prop_assert!(whole.done().is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn lines_similar_to_bars_are_parsed(line in "(Epoch|epoch|step|  5%)[ :|/%\\[\\]0-9.,kMB━]{0,60}") {
        prop_assert!(done(&line).is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
