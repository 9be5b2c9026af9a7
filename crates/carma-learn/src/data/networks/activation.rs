//! Names of activation functions in the published file names.

use carma_estimate::learned::ActivationFunction;

/// The name of a function.
pub(super) const fn word(function: ActivationFunction) -> &'static str {
    use ActivationFunction as A;
    match function {
        A::ELU => "elu",
        A::GELU => "gelu",
        A::LeakyReLU => "leaky_relu",
        A::Mish => "mish",
        A::PReLU => "prelu",
        A::ReLU => "relu",
        A::SELU => "selu",
        A::SiLU => "swish",
        A::Softplus => "softplus",
        A::Tanh => "tanh",
        A::Identity => "identity",
    }
}

/// The function of this name.
pub(super) fn named(name: &str) -> Result<ActivationFunction, String> {
    let found = ActivationFunction::ALL.into_iter().find(|function| word(*function) == name);
    found.ok_or_else(|| format!("{name:?} is no activation function known here"))
}
