//! `downpour remote`.

use downpour::Error;
use downpour::remote::{Access, KeyRestriction, ServeResult, own_digest, serve};

use crate::args::RemoteArgs;
use crate::exit::{Code, Failure};
use crate::{names, print};

/// Prints the digest of this program.
pub(crate) fn digest() -> Result<u8, Failure> {
    let digest =
        own_digest().map_err(|error| Failure::new(Code::Disk, format!("cannot read this program: {error}")))?;
    print::out(digest);
    Ok(Code::Done as u8)
}

/// Serves the peer at the other end of ssh, restricted to one directory if requested.
pub(crate) async fn run(args: RemoteArgs) -> Result<ServeResult, Error> {
    let access = match (args.read_only, args.write_only) {
        (true, _) => Access::ReadOnly,
        (_, true) => Access::WriteOnly,
        _ => Access::Full,
    };
    let limit = args.only.map(|directory| KeyRestriction { directory, access });
    serve(names(), limit.as_ref()).await
}
