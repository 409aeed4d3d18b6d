//! Statistics of repeated samples: medians and percentiles, the bootstrap over blocks, the interval of the sign test,
//! and differences among many arms.
//!
//! Owns numbers, and the generator that all randomness of a run comes from. Does not know rows, arms or text.

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
