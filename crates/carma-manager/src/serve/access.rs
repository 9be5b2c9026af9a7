//! Authentication: the caller of a request.

use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::caller::Caller;
use super::users::{UserKey, Users};
use crate::api::{Problem, ProblemKind};
use crate::configuration::ManagerConfig;
use crate::network_files::Tokens;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) enum Peer {
    /// A process of this host. The kernel knows its user.
    Local(UserKey),
    /// Must send a token.
    Network,
    /// Not authenticated: may read metrics only.
    Unauthenticated,
}

/// Identifies callers.
#[derive(Debug)]
pub(super) struct Access {
    users: Arc<Users>,
    tokens: Option<Arc<Tokens>>,
}

impl Access {
    pub(super) fn new(settings: &ManagerConfig, tokens: Option<&Path>) -> Self {
        let users = Users::new(settings.operators.clone(), rustix::process::geteuid().as_raw());
        Self { users: Arc::new(users), tokens: tokens.map(|path| Arc::new(Tokens::new(path.to_owned()))) }
    }

    /// The caller of a request with these headers, or why they are refused.
    pub(super) async fn caller(&self, peer: &Peer, headers: &HeaderMap) -> Result<Caller, Problem> {
        let key = match (peer, &self.tokens) {
            (Peer::Local(key), _) => key.clone(),
            (Peer::Network, Some(tokens)) => {
                let token =
                    bearer(headers).ok_or_else(|| ProblemKind::Unauthenticated.because("send a token: Authorization: Bearer TOKEN"))?;
                UserKey::Named(tokens.user_of(token).await?)
            }
            (Peer::Network | Peer::Unauthenticated, _) => return Err(ProblemKind::Unauthenticated.because("there are no tokens here")),
        };
        self.users.caller(key).await
    }

    /// Whether this user of the machine is an operator.
    pub(super) async fn is_operator(&self, key: &UserKey) -> bool {
        self.users.caller(key.clone()).await.is_ok_and(|caller| caller.is_operator())
    }
}

/// The token in the headers of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_headers() {
        let with = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        assert_eq!(bearer(&with("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&with("bearer  abc")), Some("abc"));
        assert_eq!(bearer(&with("Basic abc")), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
