//! Uses of a gatherer in a program: the messages about processed directories, opening entries,
//! comparing paths, limits of the walk, and the programs in the guide.

mod guide;
mod limits;
mod paths;
mod processed;
mod wait;
