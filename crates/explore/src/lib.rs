//! A terminal explorer of file trees, without the terminal.
//!
//! [`source`] is the interface of what is explored; [`sources`] are a tree that is being walked,
//! and an inventory. [`state::State`] turns keys and answers into effects, and never waits:
//! [`session::Session`] makes the calls of the source and of the [`remover`] on threads of their
//! own. [`views`] draws the state into a buffer of cells.
//!
//! Owns the keys, the marks, the order of rows and the layout of the screen. Does not own the
//! terminal, its modes and signals, or the environment.

pub mod arrange;
pub mod disk;
mod export;
pub mod filter;
pub mod input;
pub mod listing;
pub mod marks;
pub mod memory;
pub mod remover;
pub mod script;
pub mod session;
pub mod source;
pub mod sources;
pub mod state;
pub mod views;
