//! The same cases for every model: entries, fields and errors. std determines the expected result,
//! or, if it cannot, the case has the expected error.
//!
//! A model that is not available prints the reason and counts as skipped. The blocking ones always
//! are available.

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

/// Prints a reason that `make test` counts as a skip.
fn skip(why: impl Display) {
    println!("skipped: {why}");
}

fn available<M>(model: Result<M, Unavailable>) -> Option<M> {
    model.inspect_err(|why| skip(why)).ok()
}

/// Creates a test for each case of a model. The compiler warns of a case that is not in the list.
macro_rules! suite {
    ($model:ident, $make:expr) => {
        suite! { $model, $make;
            entries: every_kind_of_file_has_its_fields,
            entries: metadata_says_which_fields_it_has,
            entries: names_may_have_any_byte_and_length,
            entries: a_range_is_returned_in_order_without_excluded_entries,
            entries: a_limit_may_be_at_any_entry,
            entries: reading_continues_at_a_cookie,
            entries: the_end_cookie_loses_no_entry,
            entries: trees_deeper_than_path_max_are_read,
            entries: many_directories_are_read_concurrently,
            entries: close_closes_the_directory,
            errors: open_refuses_files_that_are_not_directories,
            errors: links_are_followed_on_request_only,
            errors: a_removed_file_is_an_error_of_its_entry_alone,
            errors: a_directory_removed_while_open_is_empty,
            denied: missing_permissions_are_errors,
            faults: faults_affect_the_same_entries_with_every_model,
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
