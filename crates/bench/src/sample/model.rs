//! The model of a sample: one of `fathom_io`, one with hints for its calls, or none.

use fathom_io::data::{BlockingData, DataOptions, DataVisitor, Position, build};
use fathom_io::{Model, Unavailable};

use super::hint::{AccessHint, HintedCalls};
use super::null::NullModel;
use super::spec::SampleSpec;
use crate::pattern::Pattern;

/// Builds the model of `spec` for one thread and calls `visitor` on it.
pub(super) fn build_and_visit<V: DataVisitor>(
    spec: &SampleSpec,
    visitor: V,
) -> Result<V::Output, Unavailable> {
    let SampleSpec { depth, batch, completion, hint, .. } = *spec;
    let options = DataOptions { depth, batch, completion, random: hint == AccessHint::Random };
    match spec.model {
        None => Ok(visitor.visit(NullModel::new(Pattern::new(spec.seed, spec.generation)))),
        Some(Model::Sync) if hint.is_of_calls() => {
            Ok(visitor.visit(BlockingData::new(HintedCalls::new(hint), Position::Explicit)))
        }
        Some(model) => build(model, options, visitor),
    }
}
