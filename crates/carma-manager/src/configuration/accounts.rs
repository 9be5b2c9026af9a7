//! Users and groups that a configuration names and this host does not know.

use carma_core::Settings;
use nix::unistd::{Gid, Group, Uid, User};

use super::{ManagerConfig, ManagerSettings};

/// The keys with unknown users and groups, each with a warning. A lookup that fails is no answer.
pub(super) fn unknown(rules: &Settings, manager: &ManagerSettings) -> Vec<(String, String)> {
    let no_user = |uid: u32| matches!(User::from_uid(Uid::from_raw(uid)), Ok(None)).then(|| format!("this host has no user {uid}"));
    let no_group = |gid: u32| matches!(Group::from_gid(Gid::from_raw(gid)), Ok(None)).then(|| format!("this host has no group {gid}"));
    // The default group need not exist: then only root can manage the jobs of other users.
    let default = ManagerConfig::default().operators;
    let operators = manager.operators.iter().filter(|name| **name != default).filter_map(|name| {
        let unknown = matches!(Group::from_name(name), Ok(None));
        unknown.then(|| {
            ("manager.operators".to_owned(), format!("this host has no group {name:?}: only root can manage the jobs of other users"))
        })
    });
    let quotas = rules.quotas.iter().flat_map(|quotas| quotas.users.iter().flatten()).enumerate();
    let quotas = quotas.filter_map(|(index, quota)| Some((format!("quotas.users[{index}].uid"), no_user(quota.uid)?)));
    let shares = rules.queue.iter().flat_map(|queue| queue.shares.iter().flatten()).enumerate();
    let shares = shares.filter_map(|(index, share)| {
        let user = share.uid.and_then(no_user).map(|text| ("uid", text));
        let (key, text) = user.or_else(|| share.gid.and_then(no_group).map(|text| ("gid", text)))?;
        Some((format!("queue.shares[{index}].{key}"), text))
    });
    operators.chain(quotas).chain(shares).map(|(key, text)| (key.clone(), format!("{key}: {text}"))).collect()
}
