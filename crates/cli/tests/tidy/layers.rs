//! Layers of modules within a crate: a module uses its own layer and those below it.

use crate::circles::uses;
use crate::tree::Tree;

/// The layers of the crate `inventory`, the lowest first: entries, the store, questions about it,
/// scans that make it, and histories of scans.
const INVENTORY: [&[&str]; 5] = [
    &["entry", "filter", "format", "ignores", "normal", "owners"],
    &["store"],
    &["browse", "diff", "export", "json", "replay", "top", "usage", "views"],
    &["estimate", "import", "merge", "scan", "units"],
    &["history"],
];

/// Finds modules of `inventory` that use one of a higher layer, or belong to none.
pub(crate) fn upward_uses(tree: &Tree) -> Vec<String> {
    upward(tree, "crates/inventory/src/", &INVENTORY)
}

fn upward(tree: &Tree, root: &str, layers: &[&[&str]]) -> Vec<String> {
    let layer = |module: &[String]| {
        let name = module.first()?;
        layers.iter().position(|names| names.contains(&name.as_str()))
    };
    let mut breaches = Vec::new();
    for (module, used) in uses(tree, root).iter().filter(|(module, _)| !module.is_empty()) {
        let Some(own) = layer(module) else {
            breaches.push(format!("{} belongs to no layer", module.join("::")));
            continue;
        };
        for other in used.iter().filter(|other| layer(other).is_none_or(|of_other| of_other > own)) {
            let other = if other.is_empty() { "the root of the crate".to_owned() } else { other.join("::") };
            breaches.push(format!("{} uses {other}, which is above it", module.join("::")));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_of_a_higher_layer_and_of_the_root_are_found() {
        let files = [
            ("c/src/lib.rs", "mod a; mod b; mod x; pub use a::A;"),
            ("c/src/a.rs", "use crate::b::B;"),
            ("c/src/b/mod.rs", "mod inner; use crate::a::A; use inner::I;"),
            ("c/src/b/inner.rs", "use crate::A;"),
            ("c/src/x.rs", ""),
        ];
        let found = upward(&Tree::of(&files), "c/src/", &[&["a"], &["b"]]);
        let expected = [
            "a uses b, which is above it",
            "b::inner uses the root of the crate, which is above it",
            "x belongs to no layer",
        ];
        assert_eq!(found, expected);
    }
}
