//! Lets commands on other hosts reach this manager.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use carma_manager::configuration::ManagerConfig;
use carma_manager::contact::{self, ListenSettings, Published};
use carma_manager::places::Places;
use carma_manager::store::HostIdentity;

/// Makes a certificate and a token, if they are wanted. A configured address has its own.
pub(super) fn invite(wanted: bool, places: &Places, settings: &ManagerConfig) -> Result<Option<ListenSettings>> {
    // One of a manager that was killed, which would mislead.
    let _ = std::fs::remove_file(contact::file(&places.state));
    if wanted && settings.network.listen.is_some() {
        tracing::warn!("manager.network is configured: commands on other hosts use CARMA_HOST, and manager.json is not written");
        return Ok(None);
    }
    let invitation = wanted.then(|| ListenSettings::new(&places.state)).transpose();
    invitation.with_context(|| format!("cannot write what other hosts need to {}", places.state.display()))
}

/// Tells clients where the manager listens.
pub(super) fn publish(invitation: Option<ListenSettings>, address: Option<SocketAddr>) -> Result<Option<Published>> {
    let Some((invitation, address)) = invitation.zip(address) else { return Ok(None) };
    let host = HostIdentity::of_this_host()?.host;
    invitation.publish(host, address.port()).map(Some).context("cannot write manager.json")
}
