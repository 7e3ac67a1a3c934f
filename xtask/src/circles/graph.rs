//! Which module imports which, and which modules form circles.

use super::Modules;
use super::imports::Path;
use std::collections::BTreeSet;

/// How many re-exports are followed from one name.
const STEPS_MAX: usize = 16;

/// Modules by index, and the imports of each.
pub struct Graph<'m> {
    modules: Vec<&'m Path>,
    imports: Vec<BTreeSet<usize>>,
}

impl<'m> Graph<'m> {
    pub fn of(all: &'m Modules) -> Graph<'m> {
        let modules: Vec<&Path> = all.keys().collect();
        let number = |module: &[String]| modules.iter().position(|other| *other == module);
        let mut graph_imports = Vec::new();
        for (from, imports) in all {
            // The crate's root only re-exports names.
            let paths = imports.paths.iter().filter(|_| !from.is_empty());
            let targets = paths.filter_map(|path| defining(all, path));
            let targets = targets.filter_map(|target| number(&target));
            let own = number(from);
            graph_imports.push(targets.filter(|target| Some(*target) != own).collect());
        }
        Graph {
            modules,
            imports: graph_imports,
        }
    }

    /// The circles, each as a sorted list of modules.
    ///
    /// A module and its own children may import one another. Two kinds of circles are therefore
    /// reported: circles without the imports between modules and their children, and circles with
    /// these that are not within one module.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let is_kin = |a: usize, b: usize| {
            let (a, b) = (self.modules[a], self.modules[b]);
            a.starts_with(b) || b.starts_with(a)
        };
        let mut found = self.components(|from, to| !is_kin(from, to));
        for component in self.components(|_, _| true) {
            let is_head = |&head: &usize| {
                let within = |&module: &usize| self.modules[module].starts_with(self.modules[head]);
                component.iter().all(within)
            };
            if !component.iter().any(is_head) {
                found.push(component);
            }
        }
        let name = |&module: &usize| self.modules[module].join("::");
        let mut circles: Vec<Vec<String>> = found
            .iter()
            .map(|component| component.iter().map(name).collect())
            .collect();
        circles.sort();
        circles.dedup();
        circles
    }

    /// Strongly connected components of more than one module, over the imports that count.
    fn components(&self, counts: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        let reached: Vec<BTreeSet<usize>> = (0..self.modules.len())
            .map(|from| self.reached_from(from, &counts))
            .collect();
        let mut components: Vec<Vec<usize>> = Vec::new();
        for module in 0..self.modules.len() {
            let is_mutual = |&other: &usize| reached[other].contains(&module);
            let mut component: Vec<usize> =
                reached[module].iter().copied().filter(is_mutual).collect();
            component.sort_unstable();
            if component.len() > 1 && component[0] == module {
                components.push(component);
            }
        }
        components
    }

    fn reached_from(&self, from: usize, counts: &impl Fn(usize, usize) -> bool) -> BTreeSet<usize> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            for &other in &self.imports[module] {
                if counts(module, other) && reached.insert(other) {
                    next.push(other);
                }
            }
        }
        reached
    }
}

/// The module that defines the named item, following re-exports as far as possible.
fn defining(all: &Modules, path: &[String]) -> Option<Path> {
    let mut path = path.to_vec();
    for _ in 0..STEPS_MAX {
        let longest = (0..=path.len())
            .rev()
            .find(|&end| all.contains_key(&path[..end]))?;
        let (module, rest) = path.split_at(longest);
        let stands_for = rest.first().and_then(|first| {
            let names = &all[module].names;
            names.iter().find(|(name, _)| name == first)
        });
        match stands_for {
            Some((_, to)) if !to.starts_with(&path) => {
                path = [&to[..], &rest[1..]].concat();
            }
            _ => return Some(module.to_vec()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circles::imports;

    /// The circles of a crate with these modules and sources.
    fn circles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let modules: Modules = sources
            .iter()
            .map(|(module, source)| {
                let module: Path = module.split("::").map(String::from).collect();
                let imports = imports::read(source, &module);
                (module, imports)
            })
            .collect();
        Graph::of(&modules).circles()
    }

    #[test]
    fn one_way_is_no_circle() {
        let sources = [
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C;"),
            ("c", ""),
        ];
        assert!(circles(&sources).is_empty());
    }

    #[test]
    fn files_that_import_one_another_are_a_circle() {
        let sources = [
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C;"),
            ("c", "use crate::a::A;"),
        ];
        assert_eq!(circles(&sources), [["a", "b", "c"]]);
    }

    #[test]
    fn a_module_and_its_children_may() {
        let sources = [
            ("a", "use b::B; use c::C;"),
            ("a::b", "use super::A;"),
            ("a::c", ""),
        ];
        assert!(circles(&sources).is_empty());
    }

    #[test]
    fn siblings_may_not() {
        let sources = [
            ("a", "pub use b::B; pub use c::C;"),
            ("a::b", "use super::c::C;"),
            ("a::c", "use super::B;"),
        ];
        assert_eq!(circles(&sources), [["a::b", "a::c"]]);
    }

    #[test]
    fn a_circle_through_a_parent_is_one() {
        let sources = [
            ("a", "use crate::b::B; use c::C;"),
            ("a::c", "use crate::b::B;"),
            ("b", "use d::D;"),
            ("b::d", "use crate::a::A;"),
        ];
        assert_eq!(circles(&sources), [["a", "a::c", "b", "b::d"]]);
    }

    #[test]
    fn names_that_are_passed_on_are_followed() {
        let sources = [
            ("a::x", "use crate::b::Y;"),
            ("b", "pub use y::Y;"),
            ("b::y", "use crate::a::x::X;"),
        ];
        assert_eq!(circles(&sources), [["a::x", "b::y"]]);
    }
}
