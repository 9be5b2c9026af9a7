//! Users and groups in a configuration: names become numbers, and what this host does not know is reported.

use std::collections::BTreeMap;
use std::ops::Range;

use carma_core::Settings;
use nix::unistd::{Gid, Group, Uid, User};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use utoipa::ToSchema;

use super::{ManagerConfig, ManagerSettings};

/// A list whose items are about users or groups.
struct AccountList {
    section: &'static str,
    key: &'static str,
}

const LISTS: [AccountList; 2] = [AccountList { section: "quotas", key: "users" }, AccountList { section: "queue", key: "shares" }];

/// How an account may be written, and under which key its number is read.
const KEYS: [(&str, &str); 4] = [("user", "uid"), ("uid", "uid"), ("group", "gid"), ("gid", "gid")];

/// The same file with numbers in place of names. An item with an unknown name is left out and reported: an account that was deleted must not keep
/// the manager from starting.
pub(super) fn with_numbers<'t>(table: &DeTable<'t>) -> (DeTable<'t>, Vec<(Range<usize>, String)>) {
    let (mut table, mut unknown) = (table.clone(), Vec::new());
    for AccountList { section, key } in LISTS {
        let Some(DeValue::Table(inner)) = table.get_mut(section).map(Spanned::get_mut) else { continue };
        let Some(DeValue::Array(items)) = inner.get_mut(key).map(Spanned::get_mut) else { continue };
        let mut kept = DeArray::new();
        for (index, mut item) in std::mem::replace(items, DeArray::new()).into_iter().enumerate() {
            let wrong = match item.get_mut() {
                DeValue::Table(table) => numbered(table, &format!("{section}.{key}[{index}]")),
                _ => Vec::new(),
            };
            if wrong.is_empty() {
                kept.push(item);
            }
            unknown.extend(wrong);
        }
        *items = kept;
    }
    (table, unknown)
}

/// Replaces the names of an item. Returns those that are unknown.
fn numbered(item: &mut DeTable<'_>, place: &str) -> Vec<(Range<usize>, String)> {
    let mut unknown = Vec::new();
    for (written, number) in KEYS {
        // Both at once are reported when the item is read.
        if written != number && item.contains_key(number) {
            continue;
        }
        let Some((key, value)) = item.remove_entry(written) else { continue };
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(name) => {
                let Some(found) = number_of(name, number) else {
                    let what = if number == "uid" { "user" } else { "group" };
                    unknown.push((span, format!("{place}.{written}: this host has no {what} {name:?}: the entry has no effect")));
                    continue;
                };
                Spanned::new(span, DeValue::String(found.to_string().into()))
            }
            _ => value,
        };
        item.insert(Spanned::new(key.span(), number.into()), value);
    }
    unknown
}

/// The number of a user or group; a number in quotes is one too.
fn number_of(name: &str, number: &str) -> Option<u32> {
    let found = match number {
        "uid" => User::from_name(name).ok().flatten().map(|user| user.uid.as_raw()),
        _ => Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw()),
    };
    found.or_else(|| name.parse().ok())
}

/// Names of users and groups, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AccountNames {
    /// Of users.
    pub users: BTreeMap<u32, String>,
    /// Of groups.
    pub groups: BTreeMap<u32, String>,
}

impl AccountNames {
    /// Of all users and groups in these settings that this host knows.
    pub fn of(rules: &Settings) -> Self {
        let quotas = rules.quotas.iter().flat_map(|quotas| quotas.users.iter().flatten()).map(|quota| quota.uid);
        let shares = || rules.queue.iter().flat_map(|queue| queue.shares.iter().flatten());
        let user = |uid| User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| (uid, user.name));
        let group = |gid| Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| (gid, group.name));
        let users = quotas.chain(shares().filter_map(|share| share.uid)).filter_map(user).collect();
        Self { users, groups: shares().filter_map(|share| share.gid).filter_map(group).collect() }
    }
}

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
