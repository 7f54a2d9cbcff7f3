//! Users and groups by name: the same person may have another number on another host.

use std::collections::{HashMap, HashSet};

use nix::unistd::{Gid, Group, Uid, User};
use request::Preserve;

use super::xattrs::map_acl;
use crate::messages::{Extra, IdKind, IdName, MAX_ID_NAMES, Owner};

/// The number that leaves an owner or group as it is (`chown(2)`).
pub(super) const UNCHANGED: u32 = u32::MAX;

/// Names of the users and groups that a sender has met.
#[derive(Debug, Default)]
pub(super) struct NamesOfIds {
    known: HashSet<(IdKind, u32)>,
    /// Found since the last call of [`NamesOfIds::take`].
    new: Vec<IdName>,
}

impl NamesOfIds {
    /// Looks up the names of an entry's owner and group, and of those in its ACLs.
    pub(super) fn look_up(&mut self, extra: &mut Extra) {
        if let Some(Owner { user, group }) = extra.owner {
            self.add(IdKind::User, user);
            self.add(IdKind::Group, group);
        }
        for xattr in &mut extra.xattrs {
            map_acl(xattr, |kind, id| {
                self.add(kind, id);
                id
            });
        }
    }

    fn add(&mut self, kind: IdKind, id: u32) {
        if self.known.len() >= MAX_ID_NAMES || id == 0 || !self.known.insert((kind, id)) {
            return;
        }
        let name = match kind {
            IdKind::User => User::from_uid(Uid::from_raw(id)).ok().flatten().map(|user| user.name),
            IdKind::Group => Group::from_gid(Gid::from_raw(id)).ok().flatten().map(|group| group.name),
        };
        self.new.extend(name.map(|name| IdName { kind, id, name: name.into_bytes() }));
    }

    /// Returns the names found since the last call.
    pub(super) fn take(&mut self) -> Vec<IdName> {
        std::mem::take(&mut self.new)
    }
}

/// Numbers at a receiver for those of its sender.
#[derive(Debug, Default)]
pub(super) struct LocalIds {
    preserve: Preserve,
    /// Whether any owner may be set.
    is_root: bool,
    /// Groups that may be set even so.
    groups: HashSet<u32>,
    /// Every named number, with the local number of that name, if there is one.
    named: HashMap<(IdKind, u32), Option<u32>>,
}

impl LocalIds {
    /// Creates the table for this process.
    pub(super) fn new(preserve: Preserve) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let own = [rustix::process::getegid()].into_iter();
        let groups = own.chain(rustix::process::getgroups().unwrap_or_default()).map(rustix::process::Gid::as_raw);
        Self { preserve, is_root, groups: groups.collect(), named: HashMap::new() }
    }

    /// Adds the name of a number.
    ///
    /// # Errors
    /// The number has a name already, or there are too many names.
    pub(super) fn name(&mut self, name: &IdName) -> Result<(), &'static str> {
        if self.named.len() >= MAX_ID_NAMES {
            return Err("too many users and groups have names");
        }
        let wanted = if name.kind == IdKind::User { self.preserve.owner } else { self.preserve.group };
        let wanted = !self.preserve.numeric_ids && name.id != 0 && (wanted || self.preserve.acls);
        let local = str::from_utf8(&name.name).ok().filter(|_| wanted).and_then(|text| match name.kind {
            IdKind::User => Some(User::from_name(text).ok()??.uid.as_raw()),
            IdKind::Group => Some(Group::from_name(text).ok()??.gid.as_raw()),
        });
        match self.named.insert((name.kind, name.id), local) {
            None => Ok(()),
            Some(_) => Err("named a user or group twice"),
        }
    }

    /// Returns the part of `sent` that is set locally, in local numbers: [`UNCHANGED`] for an owner or group that was
    /// not requested, or that this process may not set.
    pub(super) fn localize(&self, sent: &Extra) -> Extra {
        let owner = sent.owner.filter(|_| self.preserve.ids()).map(|Owner { user, group }| {
            let group = self.local(IdKind::Group, group);
            let user = if self.preserve.owner && self.is_root { self.local(IdKind::User, user) } else { UNCHANGED };
            let may_set = self.preserve.group && (self.is_root || self.groups.contains(&group));
            Owner { user, group: if may_set { group } else { UNCHANGED } }
        });
        let owner = owner.filter(|owner| (owner.user, owner.group) != (UNCHANGED, UNCHANGED));
        let mut xattrs = if self.preserve.any_xattrs() { sent.xattrs.clone() } else { Vec::new() };
        for xattr in &mut xattrs {
            map_acl(xattr, |kind, id| self.local(kind, id));
        }
        Extra { owner, xattrs }
    }

    fn local(&self, kind: IdKind, id: u32) -> u32 {
        self.named.get(&(kind, id)).copied().flatten().unwrap_or(id)
    }
}
