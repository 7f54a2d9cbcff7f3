//! Files and messages without a network: real directories, hostile manifests and failures of the disk.

// The lints know helper functions as tests by this attribute only.
#[cfg(test)]
mod attributes;
#[cfg(test)]
mod backups;
#[cfg(test)]
mod common;
#[cfg(test)]
mod crash_resume;
#[cfg(test)]
mod differences;
#[cfg(test)]
mod dry_run;
#[cfg(test)]
mod exfat;
#[cfg(test)]
mod existing;
#[cfg(test)]
mod folding;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod inheriting;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod links;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod mounted;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod options;
#[cfg(test)]
mod receive_law;
#[cfg(test)]
mod removing;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod roundtrip;
#[cfg(test)]
mod scanning;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod special_files;
#[cfg(test)]
mod tidying;
#[cfg(test)]
mod users;
