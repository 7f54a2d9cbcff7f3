//! `downpour remote`.

use downpour::Error;
use downpour::remote::{Access, Limit, Served, serve};

use crate::args::RemoteArgs;
use crate::names;

/// Serves the other end of ssh, limited to one folder if requested.
pub(crate) async fn run(args: RemoteArgs) -> Result<Served, Error> {
    let access = match (args.read_only, args.write_only) {
        (true, _) => Access::ReadOnly,
        (_, true) => Access::WriteOnly,
        _ => Access::Full,
    };
    let limit = args.only.map(|folder| Limit { folder, access });
    serve(names(), limit.as_ref()).await
}
