//! Activation functions that random networks draw from.

/// An activation function by the class that `PyTorch` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names say all.
pub enum ActivationFunction {
    ELU,
    GELU,
    LeakyReLU,
    Mish,
    PReLU,
    ReLU,
    SELU,
    SiLU,
    Softplus,
    Tanh,
    Identity,
}

impl ActivationFunction {
    /// All of them; the first ten are also used between convolutions.
    pub const ALL: [Self; 11] = [
        Self::ELU,
        Self::GELU,
        Self::LeakyReLU,
        Self::Mish,
        Self::PReLU,
        Self::ReLU,
        Self::SELU,
        Self::SiLU,
        Self::Softplus,
        Self::Tanh,
        Self::Identity,
    ];

    /// `PyTorch`'s class.
    pub const fn class(self) -> &'static str {
        match self {
            Self::ELU => "ELU",
            Self::GELU => "GELU",
            Self::LeakyReLU => "LeakyReLU",
            Self::Mish => "Mish",
            Self::PReLU => "PReLU",
            Self::ReLU => "ReLU",
            Self::SELU => "SELU",
            Self::SiLU => "SiLU",
            Self::Softplus => "Softplus",
            Self::Tanh => "Tanh",
            Self::Identity => "Identity",
        }
    }

    /// As file names write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ELU => "elu",
            Self::GELU => "gelu",
            Self::LeakyReLU => "leaky_relu",
            Self::Mish => "mish",
            Self::PReLU => "prelu",
            Self::ReLU => "relu",
            Self::SELU => "selu",
            Self::SiLU => "swish",
            Self::Softplus => "softplus",
            Self::Tanh => "tanh",
            Self::Identity => "identity",
        }
    }

    /// The function that file names call so.
    pub fn named(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|function| function.word() == word)
            .ok_or_else(|| format!("{word:?} is no activation function known here"))
    }

    /// Its place among all, for features.
    pub fn of_class(class: &str) -> Option<usize> {
        Self::ALL.iter().position(|function| function.class().eq_ignore_ascii_case(class))
    }
}
