//! What a [`Run`](crate::Run) looks like to its readers. Makes text and prints none of it.

pub mod html;
