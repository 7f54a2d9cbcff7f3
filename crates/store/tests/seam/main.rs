//! The contract of every store: transfers through the two traits alone, between all pairs of stores.

// The lints know helper functions as tests by this attribute only.
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod places;
#[cfg(test)]
mod trees;
