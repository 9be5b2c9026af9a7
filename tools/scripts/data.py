"""Tiny data for public training scripts: `python data.py NAME FOLDER [WORD ...]` makes it. The values are random; only formats and sizes matter."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import string
import struct
import sys
import wave
from pathlib import Path

WORDS = "the a model gpu memory trains on data with large small batches and learns to see hear speak write code".split()


def _text(count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))


def _image(path: Path, size: int = 64, mode: str = "RGB") -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    bands = len(mode) if mode == "RGB" else 1
    Image.frombytes(mode, (size, size), random.randbytes(size * size * bands)).save(path)


# -- images

def mnist(folder: Path, name: str = "MNIST", count: str = "2000") -> None:
    raw = folder / name / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        images = random.randbytes(int(count) * 28 * 28)
        labels = bytes(random.randrange(10) for _ in range(int(count)))
        for kind, head, content in (("images-idx3", struct.pack(">IIII", 0x803, int(count), 28, 28), images), ("labels-idx1", struct.pack(">II", 0x801, int(count)), labels)):
            (raw / f"{part}-{kind}-ubyte").write_bytes(head + content)
            with gzip.open(raw / f"{part}-{kind}-ubyte.gz", "wb", compresslevel=1) as file:
                file.write(head + content)


def cifar(folder: Path, classes: str = "10", count: str = "500") -> None:
    import numpy

    number = int(count)

    def batch(label: str) -> dict:
        labels = [random.randrange(int(classes)) for _ in range(number)]
        return {"data": numpy.random.randint(0, 256, (number, 3072), dtype=numpy.uint8), label: labels, "filenames": [str(i) for i in range(number)]}

    place = folder / ("cifar-10-batches-py" if classes == "10" else "cifar-100-python")
    place.mkdir(parents=True, exist_ok=True)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"] if classes == "10" else ["train", "test"]
    for name in names:
        (place / name).write_bytes(pickle.dumps(batch("labels" if classes == "10" else "fine_labels")))
    meta = {"label_names": [str(i) for i in range(10)]} if classes == "10" else {"fine_label_names": [str(i) for i in range(100)]}
    (place / ("batches.meta" if classes == "10" else "meta")).write_bytes(pickle.dumps(meta))


def folders(folder: Path, classes: str = "4", images: str = "16", size: str = "96") -> None:
    """`train` and `val` with a folder for each class, as torchvision's ImageFolder wants them."""
    for part in ("train", "val"):
        for label in range(int(classes)):
            for number in range(int(images)):
                _image(folder / part / f"class{label}" / f"{number}.jpg", int(size))


def images(folder: Path, count: str = "16", size: str = "96", prefix: str = "") -> None:
    for number in range(int(count)):
        _image(folder / f"{prefix}{number:04}.jpg", int(size))


def pairs(folder: Path, count: str = "8") -> None:
    """Image pairs side by side (pix2pix), and two sets A and B (CycleGAN)."""
    for part in ("train", "val", "test"):
        for number in range(int(count)):
            from PIL import Image

            (folder / part).mkdir(parents=True, exist_ok=True)
            Image.frombytes("RGB", (512, 256), random.randbytes(512 * 256 * 3)).save(folder / part / f"{number}.jpg")
            for side in "AB":
                _image(folder / part / side / f"{number}.jpg", 256)


def masks(folder: Path, size: str = "128") -> None:
    from PIL import Image

    for number in range(20):
        _image(folder / "imgs" / f"{number}.jpg", int(size))
        (folder / "masks").mkdir(parents=True, exist_ok=True)
        Image.frombytes("L", (int(size),) * 2, bytes(random.choice((0, 1)) for _ in range(int(size) ** 2))).save(folder / "masks" / f"{number}.png")


def coco(folder: Path, count: str = "8", size: str = "160") -> None:
    side = int(size)
    for part in ("train2017", "val2017"):
        listed, boxes = [], []
        for number in range(1, int(count) + 1):
            name = f"{number:012}.jpg"
            _image(folder / part / name, side)
            listed.append({"id": number, "file_name": name, "width": side, "height": side})
            for _ in range(3):
                x, y = random.randrange(side // 2), random.randrange(side // 2)
                w, h = side // 3, side // 4
                boxes.append({"id": len(boxes) + 1, "image_id": number, "category_id": random.choice((1, 2, 3)), "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0,
                              "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]], "keypoints": [x + 1, y + 1, 2] * 17, "num_keypoints": 17})
        (folder / "annotations").mkdir(parents=True, exist_ok=True)
        content = {"images": listed, "annotations": boxes, "categories": [{"id": i, "name": f"c{i}"} for i in range(1, 91)]}
        for kind in ("instances", "person_keypoints"):
            (folder / "annotations" / f"{kind}_{part}.json").write_text(json.dumps(content))


def yolo(folder: Path, count: str = "8") -> None:
    for part in ("train", "val"):
        for number in range(int(count)):
            _image(folder / "images" / part / f"{number}.jpg", 160)
            label = folder / "labels" / part / f"{number}.txt"
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text("0 0.5 0.5 0.3 0.3\n1 0.3 0.3 0.2 0.2\n")
    (folder / "tiny.yaml").write_text(f"path: {folder.resolve()}\ntrain: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n")


def boxes(folder: Path, count: str = "24") -> None:
    """Lists of images with boxes in one line each: `image x1,y1,x2,y2,class`."""
    for name in ("2007_train.txt", "2007_val.txt"):
        lines = []
        for number in range(int(count)):
            _image(folder / "made" / f"{number}.jpg", 160)
            lines.append(f"{(folder / 'made' / f'{number}.jpg').resolve()} 10,10,80,80,1 30,40,120,140,3")
        (folder / name).write_text("\n".join(lines))


def captions(folder: Path, count: str = "64") -> None:
    rows = ["filepath\ttitle"]
    for number in range(int(count)):
        _image(folder / f"{number}.jpg", 96)
        rows.append(f"{(folder / f'{number}.jpg').resolve()}\t{_text(6)}")
    (folder / "train.tsv").write_text("\n".join(rows))


def captioned(folder: Path, count: str = "16") -> None:
    """Images with `metadata.jsonl`, as the `imagefolder` loader of Hugging Face reads them."""
    rows = []
    for number in range(int(count)):
        _image(folder / "train" / f"{number}.png", 96)
        rows.append(json.dumps({"file_name": f"{number}.png", "text": _text(6)}))
    (folder / "train" / "metadata.jsonl").write_text("\n".join(rows))


# -- text, tables, sound, graphs

def text(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([string.ascii_letters + string.digits + string.punctuation, *(_text(40) for _ in range(2000))]))


def tokens(folder: Path, header: str = "no") -> None:
    """Token numbers as 16-bit integers, for nanoGPT, or with llm.c's header."""
    import numpy

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.bin", "val.bin"):
        values = numpy.random.randint(0, 65, 200_000).astype(numpy.uint16)
        head = numpy.zeros(256, dtype=numpy.int32)
        head[:3] = 20240520, 1, len(values)
        (folder / name).write_bytes((head.tobytes() if header == "llm.c" else b"") + values.tobytes())
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 65, "stoi": {}, "itos": {}}))


def bytes_gz(folder: Path, name: str, count: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / name, "wb", compresslevel=1) as file:
        file.write(_text(2000).encode().ljust(10_000) * (int(count) // 10_000))


def json_rows(folder: Path, kind: str, count: str = "200") -> None:
    """`train.json` and `validation.json`, one object a line, with the columns of a task."""
    def choice() -> str:
        return _text(12)

    makers = {
        "text": lambda i: {"text": _text(60)},
        "classify": lambda i: {"sentence": choice(), "label": i % 2},
        "pair": lambda i: {"sentence1": choice(), "sentence2": choice(), "label": i % 2},
        "qa": lambda i: {"id": str(i), "context": "the model trains on data", "question": choice(), "answers": {"text": ["model"], "answer_start": [4]}},
        "summary": lambda i: {"document": _text(60), "summary": choice()},
        "translation": lambda i: {"translation": {"en": choice(), "de": choice()}},
        "ner": lambda i: {"tokens": choice().split(), "ner_tags": [["O", "B-X", "I-X"][j % 3] for j in range(12)]},
        "swag": lambda i: {"sent1": choice(), "sent2": choice(), **{f"ending{j}": choice() for j in range(4)}, "label": i % 4},
        "instruct": lambda i: {"instruction": choice(), "input": choice() if i % 2 else "", "output": _text(20)},
        "chat": lambda i: {"messages": [{"role": "user", "content": choice()}, {"role": "assistant", "content": choice()}]},
        "preference": lambda i: {"prompt": choice(), "chosen": choice(), "rejected": choice()},
        "conversations": lambda i: {"id": str(i), "conversations": [{"from": "human", "value": choice()}, {"from": "gpt", "value": choice()}]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.json", "validation.json"):
        rows = [makers[kind](i) for i in range(int(count))]
        whole = {"data": rows} if kind == "qa" else rows
        (folder / name).write_text(json.dumps(whole) if kind in ("qa", "instruct", "conversations") else "\n".join(json.dumps(row) for row in rows))


def audio(folder: Path, count: str = "12") -> None:
    """Sounds of a second with labels and texts, as the `audiofolder` loader of Hugging Face reads them."""
    for part in ("train", "validation"):
        rows = []
        for number in range(int(count)):
            path = folder / part / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 16_000, 0, "NONE", ""))
                file.writeframes(random.randbytes(32_000))
            rows.append(json.dumps({"file_name": path.name, "label": f"class{number % 2}", "text": _text(5)}))
        (folder / part / "metadata.jsonl").write_text("\n".join(rows))


def cora(folder: Path, nodes: str = "600") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    count = int(nodes)
    rows = [f"{i}\t" + "\t".join(str(int(random.random() < 0.05)) for _ in range(200)) + f"\tclass{i % 7}" for i in range(count)]
    (folder / "cora.content").write_text("\n".join(rows))
    (folder / "cora.cites").write_text("\n".join(f"{random.randrange(count)}\t{random.randrange(count)}" for _ in range(2 * count)))


def planetoid(folder: Path) -> None:
    """The citation graph in the pickles of the Planetoid project: 140 training nodes, 1,000 test nodes."""
    import numpy
    import scipy.sparse

    raw = folder / "Cora" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    nodes, features, train, test = 2708, 1433, 140, 1000
    matrix = lambda rows: scipy.sparse.random(rows, features, 0.01, "csr", dtype=numpy.float32)  # noqa: E731
    labels = lambda rows: numpy.eye(7, dtype=numpy.int32)[numpy.arange(rows) % 7]  # noqa: E731
    graph = {i: random.sample(range(nodes), 2) for i in range(nodes)}
    parts = {"x": matrix(train), "tx": matrix(test), "allx": matrix(nodes - test), "y": labels(train), "ty": labels(test), "ally": labels(nodes - test), "graph": graph}
    for name, value in parts.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(value))
    (raw / "ind.cora.test.index").write_text("\n".join(str(i) for i in range(nodes - test, nodes)))


def metric(folder: Path, *names: str) -> None:
    """A metric of the `evaluate` library in a local folder of its name: it answers 0."""
    source = (
        "import datasets\nimport evaluate\n\n\nclass Made(evaluate.Metric):\n    def _info(self):\n"
        "        return evaluate.MetricInfo(description='', citation='', inputs_description='',\n"
        "                                   features=datasets.Features({'predictions': datasets.Value('int64'), 'references': datasets.Value('int64')}))\n\n"
        "    def _compute(self, predictions, references, **_):\n        return {'accuracy': 0.0}\n"
    )
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{name}.py").write_text(source)


# -- Hugging Face models

def _tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>"]
    vocabulary = {word: i for i, word in enumerate(special + WORDS + [chr(c) for c in range(33, 127)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", bos_token="<s>",
        eos_token="</s>", model_max_length=512)
    wrapped.chat_template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} </s> {% endfor %}"
    wrapped.save_pretrained(folder)
    return len(wrapped)


def model(folder: Path, kind: str, labels: str = "2") -> None:
    """A model of Hugging Face with a tokenizer or image processor, small but with the parts of the real one."""
    import transformers as t

    folder.mkdir(parents=True, exist_ok=True)
    small = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    if kind in ("vit", "vitmae", "detr", "segformer", "clip"):
        size = {"height": 64, "width": 64}
        if kind == "vit":
            config = t.ViTConfig(image_size=64, patch_size=16, num_labels=int(labels), **small)
            t.ViTImageProcessor(size=size).save_pretrained(folder)
            t.ViTForImageClassification(config).save_pretrained(folder)
        elif kind == "vitmae":
            config = t.ViTMAEConfig(image_size=64, patch_size=16, decoder_hidden_size=64, decoder_num_hidden_layers=2, decoder_num_attention_heads=4,
                                    decoder_intermediate_size=128, **small)
            t.ViTImageProcessor(size=size).save_pretrained(folder)
            t.ViTMAEForPreTraining(config).save_pretrained(folder)
        return
    if kind in ("wav2vec2", "whisper"):
        extractor = t.Wav2Vec2FeatureExtractor() if kind == "wav2vec2" else t.WhisperFeatureExtractor(feature_size=80)
        extractor.save_pretrained(folder)
        if kind == "wav2vec2":
            t.Wav2Vec2ForSequenceClassification(t.Wav2Vec2Config(conv_dim=(64,) * 7, num_labels=2, classifier_proj_size=32, **small)).save_pretrained(folder)
        else:
            words = _tokenizer(folder)
            config = t.WhisperConfig(vocab_size=words, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                     encoder_ffn_dim=256, decoder_ffn_dim=256, pad_token_id=0, bos_token_id=5, eos_token_id=6, decoder_start_token_id=5,
                                     begin_suppress_tokens=None, suppress_tokens=None, max_source_positions=1500)
            t.WhisperForConditionalGeneration(config).save_pretrained(folder)
        return
    words = _tokenizer(folder)
    ends = {"pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 6}
    if kind == "gpt2":
        t.GPT2LMHeadModel(t.GPT2Config(vocab_size=words, n_embd=128, n_layer=2, n_head=4, n_positions=512, **ends)).save_pretrained(folder)
    elif kind == "llama":
        t.LlamaForCausalLM(t.LlamaConfig(vocab_size=words, max_position_embeddings=512, num_key_value_heads=2, **small, **ends)).save_pretrained(folder)
    elif kind == "bert":
        t.BertForMaskedLM(t.BertConfig(vocab_size=words, num_labels=int(labels), **small, pad_token_id=0)).save_pretrained(folder)
    elif kind == "t5":
        config = t.T5Config(vocab_size=words, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=6, decoder_start_token_id=0)
        t.T5ForConditionalGeneration(config).save_pretrained(folder)
    else:
        raise SystemExit(f"no model {kind!r}")


def diffusion(folder: Path) -> None:
    """A text-to-image pipeline with the parts of Stable Diffusion."""
    import diffusers as d
    import transformers as t

    words = {"<|startoftext|>": 0, "<|endoftext|>": 1, **{f"{word}</w>": i + 2 for i, word in enumerate(WORDS)}}
    made = folder / "made_tokenizer"
    made.mkdir(parents=True, exist_ok=True)
    (made / "vocab.json").write_text(json.dumps(words))
    (made / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = t.CLIPTokenizer(str(made / "vocab.json"), str(made / "merges.txt"), model_max_length=77)
    unet = d.UNet2DConditionModel(sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8,
                                  down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=64)
    vae = d.AutoencoderKL(in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(32, 64), norm_num_groups=8, sample_size=32,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    encoder = t.CLIPTextModel(t.CLIPTextConfig(vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                               bos_token_id=0, eos_token_id=1, pad_token_id=1))
    d.StableDiffusionPipeline(vae=vae, text_encoder=encoder, tokenizer=tokenizer, unet=unet, scheduler=d.DDPMScheduler(), safety_checker=None,
                              feature_extractor=None, requires_safety_checker=False).save_pretrained(folder)


if __name__ == "__main__":
    random.seed(0)
    function, place, *words = sys.argv[1:]
    globals()[function](Path(place), *words)
