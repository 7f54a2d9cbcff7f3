//! Common parts of the development commands of this workspace and the lab's.

pub mod checks;
pub mod failure;
pub mod measuring;
pub mod tools;
