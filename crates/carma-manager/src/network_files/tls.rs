//! TLS with the configured certificate and key.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::UnusableFile;

/// Accepts connections with this certificate chain.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, UnusableFile> {
    let bad_certificate = |reason: String| UnusableFile::new("manager.network.certificate", certificate, &reason);
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| bad_certificate(error.to_string()))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| UnusableFile::new("manager.network.key", key, &error))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, secret);
    let mut config = config.map_err(|error| bad_certificate(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
