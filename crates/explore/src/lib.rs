//! A terminal explorer of file trees, without the terminal.
//!
//! [`source`] is the interface of what is explored: a tree that is being walked, or an inventory.

pub mod source;
