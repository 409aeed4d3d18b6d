//! Statistics of repeated samples: medians and percentiles, the bootstrap over blocks, the sign
//! test interval, and simultaneous comparisons of many arms.
//!
//! Owns: numerics, and the random number generator of a run. Does not own: rows, arms and text.

mod best;
mod bootstrap;
mod random;
mod rank;
mod sign;

pub use best::lower_bounds;
pub use bootstrap::{Bootstrap, CONFIDENCE, DRAWS};
pub use random::Random;
pub use rank::{median, percentile};
pub use sign::sign_interval;
