//! The sentence of each cell as HTML. [`CellFinding`] decides its content.

use super::cells::CellSection;
use crate::ArmSummary;
use crate::report::{ArmWords, CellFinding};

/// Formats the sentence as HTML.
pub(super) fn sentence(cell: &CellSection) -> String {
    let arms = cell.arms.iter().map(|arm| arm.summary);
    CellFinding::of(arms, cell.noise.map(|(_, noise)| noise)).sentence(&MarkupWords(cell))
}

struct MarkupWords<'a>(&'a CellSection<'a>);

impl ArmWords for MarkupWords<'_> {
    fn name(&self, arm: &ArmSummary) -> String {
        self.0.section_of(arm).map_or_else(String::new, |section| section.name.clone())
    }

    fn ratio(&self, arm: &ArmSummary) -> String {
        let section = self.0.section_of(arm);
        section.map_or_else(String::new, |section| {
            format!(r#"<span data-at="{}">{}</span>"#, section.at, section.interval("ratio"))
        })
    }
}
