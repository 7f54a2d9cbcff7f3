//! The request of the user.

use std::path::Path;

use store::{
    AllowedNames, Compare, Existing, FileLimits, Filter, ItemName, Modes, Preserve, ReceiveRequest, RequestedItems,
};

use crate::draws::Draws;
use crate::tree::{NAMES, path};

fn filter(draws: &mut Draws<'_>) -> Filter {
    let rules: [&[u8]; 4] = [b"", b"- .ssh\n", b"- *.sh\n", b"+ /a\n- A\n"];
    Filter::parse(draws.one_of(&rules)).expect("rules")
}

fn item(draws: &mut Draws<'_>) -> ItemName {
    match draws.below(6) {
        0 => ItemName::Wildcard("*".into()),
        1 => ItemName::NewDirectory,
        _ => ItemName::Exact(draws.one_of(&NAMES).into()),
    }
}

/// Draws a request for a transfer into the directory `into`, or to a name in it.
pub(crate) fn spec(draws: &mut Draws<'_>, into: &Path) -> ReceiveRequest {
    let contents = draws.one_in(2);
    let target = if contents || draws.one_in(2) { into.to_owned() } else { into.join(draws.one_of(&NAMES)) };
    // A link named by the user as the target is followed.
    let target = if target.is_symlink() { into.to_owned() } else { target };
    let items = (!contents && draws.one_in(2)).then(|| (0..=draws.below(2)).map(|_| item(draws)).collect());
    let files_from = draws.one_in(6).then(|| (0..3).map(|_| path(draws, 2).into()).collect());
    ReceiveRequest {
        requested: RequestedItems { many: contents || draws.one_in(2), contents, ..RequestedItems::default() },
        existing: draws.one_of(&[
            Existing::Refuse,
            Existing::Replace,
            Existing::Skip,
            Existing::KeepNewer,
            Existing::UpdateOnly,
        ]),
        modes: draws.one_of(&[Modes::Masked, Modes::Exact]),
        preserve: Preserve {
            owner: draws.one_in(4),
            group: draws.one_in(4),
            acls: draws.one_in(4),
            xattrs: draws.one_in(4),
            specials: draws.one_in(2),
            ..Preserve::default()
        },
        delete: draws.one_in(3).then(|| filter(draws)),
        max_delete: draws.one_in(4).then(|| draws.below(3).into()),
        force_empty: draws.one_in(3),
        safe_links: draws.one_in(2),
        dry_run: draws.one_in(8),
        permitted: AllowedNames { items, filter: filter(draws), files_from, ..AllowedNames::default() },
        compare: draws.one_of(&[Compare::SizeAndTime, Compare::Size, Compare::Never]),
        eligible: FileLimits { max_size: draws.one_in(8).then(|| draws.below(3).into()), ..FileLimits::default() },
        chmod: draws.one_in(8).then(|| "a+rwxs".parse().expect("changes")),
        omit_directory_times: draws.one_in(8),
        make_path: draws.one_in(8),
        ..ReceiveRequest::to_target(target)
    }
}
