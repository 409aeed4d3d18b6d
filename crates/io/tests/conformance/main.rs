//! The same cases over every model: same entries, same fields, same errors. What is right is what std says of the tree,
//! or, where std has no word for it, the error written down in the case.
//!
//! A model that is not available here prints why and counts as skipped; the blocking ones always are.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod denied;
mod entries;
mod errors;
mod faults;
mod listing;
mod random;

use std::fmt::Display;

use fathom_io::Unavailable;
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_io::tokio_fs::{AsyncPar, AsyncSeq};

/// What `make test` counts as skipped.
fn skip(why: impl Display) {
    println!("skipped: {why}");
}

fn available<M>(model: Result<M, Unavailable>) -> Option<M> {
    model.inspect_err(|why| skip(why)).ok()
}

/// One test a case for one model. The compiler warns of a case that is not in the list.
macro_rules! suite {
    ($model:ident, $make:expr) => {
        suite! { $model, $make;
            entries: every_kind_of_file_has_its_fields,
            entries: names_of_every_byte_and_of_every_length,
            entries: a_range_is_answered_in_order_and_what_is_off_is_left_out,
            entries: limits_cut_anywhere,
            entries: reading_goes_on_from_a_cookie,
            entries: the_cookie_of_the_end_ends_nothing_early,
            entries: deeper_than_any_path,
            entries: many_directories_at_once,
            entries: a_directory_is_closed_when_the_model_says_so,
            errors: what_is_no_directory_is_not_opened,
            errors: links_are_followed_only_when_told,
            errors: what_vanished_is_an_error_of_its_own_entry,
            errors: a_directory_removed_while_open_is_empty,
            denied: permissions_are_errors,
            faults: faults_strike_the_same_entries_under_every_model,
        }
    };
    ($model:ident, $make:expr; $($file:ident: $case:ident,)*) => {
        mod $model {
            use super::*;

            $(#[test]
            fn $case() {
                crate::$file::$case(|| available($make));
            })*
        }
    };
}

suite!(blocking, Ok(Blocking));
suite!(simulated, Ok(Faults::new(1, Rates::default()).over(Blocking)));
suite!(async_seq, AsyncSeq::new());
suite!(async_par, AsyncPar::new());

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod uring {
    use super::*;
    use fathom_io::uring::Uring;

    suite!(depth_1, Uring::new(1));
    suite!(depth_2, Uring::new(2));
    suite!(depth_64, Uring::new(64));
}
