//! Configuration of a transformer: the sizes and choices that determine its operators.

/// Sizes and choices of a transformer.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own that families combine freely")]
pub(in super::super) struct TransformerConfig {
    /// Class or name of the model.
    pub name: String,
    pub vocabulary: u64,
    pub hidden: u64,
    /// Layers of the only stack, or of the encoder.
    pub layers: u64,
    /// Layers of a decoder that also attends to the encoder's result; 0 without one.
    pub decoder_layers: u64,
    pub heads: u64,
    /// Fewer than `heads` if several queries share a key.
    pub key_heads: u64,
    pub head_width: u64,
    pub intermediate: u64,
    pub sequence: u64,
    pub positions: Positions,
    /// Number of segment types with an embedding; 0 without.
    pub token_types: u64,
    pub norm: Norm,
    /// Whether a block normalises its input instead of its output.
    pub pre_norm: bool,
    /// Whether a block also normalises the result of each part before it is added (Gemma 2).
    pub result_norm: bool,
    /// Whether queries and keys are normalised head by head (Qwen 3).
    pub query_norm: bool,
    /// Whether a tanh limits attention scores.
    pub capped_scores: bool,
    /// Whether a tanh limits the scores of words.
    pub capped_words: bool,
    /// Whether embeddings are normalised.
    pub embedding_norm: bool,
    pub final_norm: bool,
    /// Whether attention and feed-forward block read the same input (`GPT-NeoX`).
    pub parallel: bool,
    pub attention: Attention,
    /// Whether query, key and value come from one matrix.
    pub joint: bool,
    pub projection_bias: bool,
    pub output_bias: bool,
    pub feed_forward_bias: bool,
    /// Class of the activation function.
    pub activation: String,
    /// Whether a second product multiplies the activation.
    pub gated: bool,
    /// Whether there is dropout after the activation too.
    pub inner_dropout: bool,
    pub dropout: f64,
    pub attention_dropout: f64,
    /// Whether the last product uses the embedding's weights.
    pub tied: bool,
    /// Whether the first token goes through a pooling layer, independent of the head.
    pub pooler: bool,
    pub head: Head,
    /// Images instead of words.
    pub patches: Option<Patches>,
    /// Class of products with weights: `Conv1D` in GPT-2.
    pub linear: &'static str,
}

/// Kind of position encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Positions {
    /// A table of this many rows.
    Learned(u64),
    /// Queries and keys are rotated.
    Rotary,
    /// A bias for each distance, from a table of this many rows.
    Bias(u64),
    /// No memory.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Norm {
    Layer,
    RootMeanSquare(&'static str),
}

/// Implementation of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Attention {
    /// One fused kernel that saves no scores.
    Fused,
    /// Step by step: scores and their dropout mask are saved.
    Eager,
    /// Step by step with relative positions, as in `XLNet`.
    Relative,
}

/// The part after the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Head {
    None,
    /// A layer, a normalisation and the vocabulary, with a bias per word.
    Masked,
    /// The vocabulary; with a bias per word in `XLNet`.
    Causal {
        bias: bool,
    },
    /// Classes.
    Classifier {
        labels: u64,
        style: Classifier,
    },
}

/// Kind of classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Classifier {
    /// Dropout and a product, after the pooler.
    Pooled,
    /// A layer with its own activation, then dropout and a product.
    Dense,
    /// Only the product, over all tokens, without a bias.
    EveryToken,
    /// Only the product.
    Plain,
}

/// An image cut into squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Patches {
    pub image: [u64; 2],
    pub side: u64,
    pub channels: u64,
}

/// Maximum assumed sequence length, even if the model allows more.
pub(in super::super) const LONGEST_ASSUMED: u64 = 2048;

impl TransformerConfig {
    /// The choices of a model family, by Hugging Face's `model_type`; all sizes are 0. An unknown family is assumed to be a decoder with
    /// pre-normalisation and learned positions.
    pub(in super::super) fn of_family(family: &str) -> Self {
        let base = Self {
            name: family.to_owned(),
            vocabulary: 0,
            hidden: 0,
            layers: 0,
            decoder_layers: 0,
            heads: 0,
            key_heads: 0,
            head_width: 0,
            intermediate: 0,
            sequence: 0,
            positions: Positions::Learned(0),
            token_types: 0,
            norm: Norm::Layer,
            pre_norm: true,
            result_norm: false,
            query_norm: false,
            capped_scores: false,
            capped_words: false,
            embedding_norm: false,
            final_norm: true,
            parallel: false,
            attention: Attention::Fused,
            joint: false,
            projection_bias: true,
            output_bias: true,
            feed_forward_bias: true,
            activation: "GELUActivation".to_owned(),
            gated: false,
            inner_dropout: false,
            dropout: 0.1,
            attention_dropout: 0.1,
            tied: true,
            pooler: false,
            head: Head::None,
            patches: None,
            linear: "Linear",
        };
        match family {
            "bert" | "roberta" | "xlm-roberta" | "camembert" | "electra" | "ernie" => {
                Self { pre_norm: false, final_norm: false, embedding_norm: true, token_types: 2, ..base }
            }
            "distilbert" | "mpnet" => Self { pre_norm: false, final_norm: false, embedding_norm: true, ..base },
            "gpt2" => Self { joint: true, linear: "Conv1D", activation: "NewGELUActivation".to_owned(), ..base },
            "opt" => Self { activation: "ReLU".to_owned(), attention_dropout: 0.0, ..base },
            "gpt_neox" => Self {
                joint: true,
                parallel: true,
                positions: Positions::Rotary,
                tied: false,
                dropout: 0.0,
                attention_dropout: 0.0,
                ..base
            },
            "gpt_neo" => Self { attention: Attention::Eager, projection_bias: false, activation: "NewGELUActivation".to_owned(), ..base },
            "llama" | "mistral" | "qwen2" | "qwen3" | "gemma" | "gemma2" | "gemma3_text" | "phi3" | "olmo" | "granite" => Self {
                norm: Norm::RootMeanSquare("LlamaRMSNorm"),
                result_norm: matches!(family, "gemma2" | "gemma3_text"),
                query_norm: matches!(family, "qwen3" | "gemma3_text"),
                positions: Positions::Rotary,
                gated: true,
                projection_bias: family == "qwen2",
                output_bias: false,
                feed_forward_bias: false,
                activation: "SiLU".to_owned(),
                dropout: 0.0,
                attention_dropout: 0.0,
                tied: family.starts_with("gemma"),
                ..base
            },
            "t5" | "mt5" | "umt5" => Self {
                norm: Norm::RootMeanSquare("T5LayerNorm"),
                positions: Positions::Bias(32),
                attention: Attention::Eager,
                projection_bias: false,
                output_bias: false,
                feed_forward_bias: false,
                activation: "ReLU".to_owned(),
                inner_dropout: true,
                ..base
            },
            "xlnet" => Self {
                pre_norm: false,
                final_norm: false,
                positions: Positions::None,
                attention: Attention::Relative,
                inner_dropout: true,
                ..base
            },
            "vit" | "deit" => Self {
                positions: Positions::None,
                dropout: 0.0,
                attention_dropout: 0.0,
                patches: Some(Patches { image: [224, 224], side: 16, channels: 3 }),
                ..base
            },
            _ => base,
        }
    }

    /// Whether the family has choices of its own.
    pub(in super::super) fn is_of_known_family(&self) -> bool {
        *self != Self { name: self.name.clone(), ..Self::of_family("") }
    }

    /// The family of a class such as `BertForMaskedLM`.
    pub(in super::super) fn family_of_class(class: &str) -> Option<&'static str> {
        const FAMILIES: [(&str, &str); 24] = [
            ("Bert", "bert"),
            ("Roberta", "roberta"),
            ("XLMRoberta", "xlm-roberta"),
            ("Camembert", "camembert"),
            ("Electra", "electra"),
            ("DistilBert", "distilbert"),
            ("MPNet", "mpnet"),
            ("GPT2", "gpt2"),
            ("OPT", "opt"),
            ("GPTNeoX", "gpt_neox"),
            ("Llama", "llama"),
            ("Mistral", "mistral"),
            ("Qwen2", "qwen2"),
            ("Gemma", "gemma"),
            ("Gemma2", "gemma2"),
            ("Gemma3", "gemma3_text"),
            ("GPTNeo", "gpt_neo"),
            ("Qwen3", "qwen3"),
            ("T5", "t5"),
            ("MT5", "mt5"),
            ("XLNet", "xlnet"),
            ("ViT", "vit"),
            ("DeiT", "deit"),
            ("Olmo", "olmo"),
        ];
        let known = FAMILIES.iter().filter(|(prefix, _)| {
            class.strip_prefix(prefix).is_some_and(|rest| {
                rest.starts_with("For")
                    || rest == "Model"
                    || rest == "LMHeadModel"
                    || rest.ends_with("HeadsModel")
                    || rest == "EncoderModel"
            })
        });
        known.max_by_key(|(prefix, _)| prefix.len()).map(|&(_, family)| family)
    }

    /// The head of a class such as `BertForMaskedLM`.
    pub(in super::super) fn head_of_class(family: &str, class: &str, labels: u64) -> Head {
        if class.ends_with("ForMaskedLM") || class.ends_with("ForPreTraining") {
            Head::Masked
        } else if class.ends_with("LMHeadModel") || class.ends_with("ForCausalLM") || class.ends_with("ForConditionalGeneration") {
            Head::Causal { bias: family == "xlnet" }
        } else if class.ends_with("Classification") {
            let style = match family {
                "bert" | "mpnet" if class.ends_with("SequenceClassification") => Classifier::Pooled,
                "roberta" | "xlm-roberta" | "camembert" | "electra" | "distilbert" | "xlnet" => Classifier::Dense,
                "gpt2" | "gpt_neo" | "opt" | "llama" | "mistral" | "qwen2" | "qwen3" | "gemma" | "gemma2" | "gemma3_text" | "gpt_neox" => {
                    Classifier::EveryToken
                }
                _ => Classifier::Plain,
            };
            Head::Classifier { labels, style }
        } else {
            Head::None
        }
    }
}
