//! What every store has to do, whichever it is: transfers by the two traits alone, between all pairs of the stores that there
//! are.

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
