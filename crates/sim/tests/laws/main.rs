//! The laws of ARCHITECTURE that apply to whole transfers, one test each.

mod bleaching;
mod bounds;
mod closing;
mod credit;
mod feedback;
mod live_limit;
mod live_settings;
mod many_objects;
mod same_seed;
mod silence;
mod single_losses;
mod streams;
mod support;
mod unreachable;
mod windows;
mod zero_loss;
