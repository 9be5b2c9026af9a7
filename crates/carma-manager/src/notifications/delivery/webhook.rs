//! Webhooks: a document is posted to a web server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use super::DeliveryError;
use crate::client::{CA_VARIABLE, SYSTEM_ROOTS};
use crate::notifications::message::Message;
use crate::notifications::validate::host;

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends it.
pub(super) fn post(url: &str, message: &Message) -> Result<(), DeliveryError> {
    let request = agent(url.starts_with("https:"))?.post(url).header("content-type", "application/json");
    let response = request.send(message.document().to_string()).map_err(|error| {
        // The error may quote the address, which holds a secret.
        DeliveryError::Unreachable(error.to_string().replace(url, &host(url)))
    })?;
    let status = response.status();
    if status.is_success() { Ok(()) } else { Err(DeliveryError::Refused(status.to_string())) }
}

fn agent(encrypted: bool) -> Result<Agent, DeliveryError> {
    let mut tls = TlsConfig::builder().provider(TlsProvider::Rustls).unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    if encrypted {
        tls = tls.root_certs(roots()?);
    }
    // No redirects: the message is for this server alone.
    let config = Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0).http_status_as_error(false);
    Ok(config.tls_config(tls.build()).user_agent(concat!("carma/", env!("CARGO_PKG_VERSION"))).build().into())
}

/// The certificates that the system trusts.
fn roots() -> Result<RootCerts, DeliveryError> {
    let file = std::env::var_os(CA_VARIABLE).unwrap_or_else(|| SYSTEM_ROOTS.into());
    let path = Path::new(&file).display().to_string();
    let pem = std::fs::read(&file).map_err(|error| DeliveryError::Certificates { path: path.clone(), reason: error.to_string() })?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(DeliveryError::Certificates { path, reason: "there are none".to_owned() });
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
