//! Variables that look like secrets. The job gets them unchanged; they are not shown.

use crate::request::{HIDDEN, JobRequest};

/// Endings of the words of a secret's name.
const SECRETS: [&str; 10] = ["TOKEN", "KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL", "CREDENTIALS", "KEYS", "TOKENS"];

/// Whether a variable's name looks like the name of a secret.
///
/// ```
/// use carma_manager::submission::looks_secret;
/// assert!(["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "openai_apikey", "DB_PASSWORD_2"].into_iter().all(looks_secret));
/// assert!(!["TOKENIZERS_PARALLELISM", "KEYBOARD", "PWD", "HOME"].into_iter().any(looks_secret));
/// ```
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split(|letter: char| !letter.is_ascii_alphabetic()).any(|word| SECRETS.iter().any(|secret| word.ends_with(secret)))
}

impl JobRequest {
    /// The request without the values of secrets.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        let secrets = self.environment.iter_mut().filter(|(name, _)| looks_secret(name));
        secrets.for_each(|(_, value)| HIDDEN.clone_into(value));
        self
    }
}
