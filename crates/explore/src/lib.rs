//! A terminal explorer of file trees, without the terminal.
//!
//! [`source`] is the interface of what is explored. [`sources`] has a tree that is being walked and
//! an inventory.

pub mod source;
pub mod sources;
