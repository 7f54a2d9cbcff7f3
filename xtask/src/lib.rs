//! What the development commands of this workspace and of the lab's share.

pub mod checks;
pub mod failure;
pub mod measuring;
pub mod tools;
