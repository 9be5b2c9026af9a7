//! Activation functions that the classifiers distinguish.

/// An activation function, by its `PyTorch` class.
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

    /// Index of a class in [`Self::ALL`], for features.
    pub fn of_class(class: &str) -> Option<usize> {
        Self::ALL.iter().position(|function| function.class().eq_ignore_ascii_case(class))
    }
}
