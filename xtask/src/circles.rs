//! Circles of imports among the files of a crate: a file that imports from another can be read, tested and moved with that one
//! alone, so no file leads back to itself.
//!
//! It reads the `use` declarations at the beginning of a line, and needs no compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use xtask::failure::Failure;
use xtask::tools;

const CRATES: [&str; 6] = ["runtime", "request", "store", "net", "downpour", "cli"];

/// Pairs that may import from each other. In `net`, a message may bring the handler of events, an event a stream, and a stream
/// sends messages.
const MUTUAL: [(&str, &str, &str); 1] = [("net", "messages", "stream")];

/// The path of a module in its crate.
type Module = Vec<String>;

/// Checks every crate; the error lists the circles.
pub(crate) fn check() -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for name in CRATES {
        let files = Files::read(&tools::root().join("crates").join(name).join("src"))?;
        let mut imports = files.imports();
        for (_, one, other) in MUTUAL.iter().filter(|(crate_name, ..)| *crate_name == name) {
            imports.entry(vec![(*one).to_owned()]).or_default().remove(&vec![(*other).to_owned()]);
        }
        let circles = circles(&imports);
        wrong.extend(circles.iter().map(|circle| format!("{name}: {}", circle.join(" <-> "))));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("\n"))) }
}

/// The sources of a crate by their modules, without tests and comments.
struct Files(BTreeMap<Module, String>);

impl Files {
    fn read(source: &Path) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for path in tools::files(source, Some("rs"))? {
            let mut module: Module = path
                .strip_prefix(source)
                .unwrap_or(&path)
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
                module.pop();
            }
            if module.iter().any(|part| part == "tests") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
            files.insert(module, lines.collect::<Vec<_>>().join("\n"));
        }
        Ok(Self(files))
    }

    /// Returns the modules that each one imports from. A re-export under its own name is no import.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let imported = |module: &Module, text: &str| {
            let own = uses(text).into_iter().filter(|(is_public, _)| !is_public);
            let paths = own.filter_map(|(_, path)| self.resolve(module, &path));
            let mut found: BTreeSet<Module> = paths.map(|(target, rest)| self.origin(target, &rest, 0)).collect();
            found.remove(module);
            found
        };
        self.0.iter().map(|(module, text)| (module.clone(), imported(module, text))).collect()
    }

    /// Returns the module of a path, and the name in it; `None` for another crate's.
    fn resolve(&self, from: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let (mut module, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from.clone(), path),
            first if self.0.contains_key(&[from.as_slice(), &[first.to_owned()]].concat()) => (from.clone(), path),
            _ => return None,
        };
        while let [first, others @ ..] = rest {
            if first == "super" {
                module.pop();
            } else if self.0.contains_key(&[module.as_slice(), std::slice::from_ref(first)].concat()) {
                module.push(first.clone());
            } else {
                break;
            }
            rest = others;
        }
        Some((module, rest.to_vec()))
    }

    /// Returns the module that a name which a module re-exports is from.
    fn origin(&self, module: Module, rest: &[String], depth: u32) -> Module {
        let Some((name, text)) = rest.first().zip(self.0.get(&module)) else { return module };
        let again = uses(text).into_iter().find(|(is_public, path)| *is_public && path.last() == Some(name));
        match again.and_then(|(_, path)| self.resolve(&module, &path)) {
            Some((origin, rest)) if depth < 8 => self.origin(origin, &rest, depth + 1),
            _ => module,
        }
    }
}

/// Returns the paths that a source uses, each with whether it is re-exported.
fn uses(text: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for statement in text.split(';') {
        let Some((before, tree)) = statement.rsplit_once("use ") else { continue };
        // At the beginning of a line, and so neither in a function nor in a module within the file.
        let before = before.rsplit('\n').next().unwrap_or_default();
        if before.is_empty() || before.starts_with("pub") {
            expand(&[], tree, &mut |path| found.push((!before.is_empty(), path)));
        }
    }
    found
}

/// Passes each path of a tree such as `a::{b, c::d}` to `each`.
fn expand(above: &[String], tree: &str, each: &mut impl FnMut(Vec<String>)) {
    let words = |path: &str| {
        path.split("::").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<String>>()
    };
    if let Some((path, inner)) = tree.split_once('{') {
        let path: Vec<String> = [above, &words(path)].concat();
        let inner = inner.trim().strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut start) = (0, 0);
        for (at, byte) in inner.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    expand(&path, &inner[start..at], each);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return expand(&path, &inner[start..], each);
    }
    let path: Vec<String> = [above, &words(tree.split(" as ").next().unwrap_or_default())].concat();
    if path.len() > above.len() {
        each(path);
    }
}

/// Returns the modules that lead back to themselves, in groups that lead to each other.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached = |from: &Module| {
        let (mut found, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(next) = left.pop() {
            left.extend(imports.get(next).into_iter().flatten().filter(|target| found.insert((*target).clone())));
        }
        found
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = imports.keys().map(|module| (module, reached(module))).collect();
    let mut circles = BTreeSet::new();
    for (module, targets) in reached.iter().filter(|(module, targets)| targets.contains(**module)) {
        let back = |target: &&Module| reached.get(*target).is_some_and(|targets| targets.contains(*module));
        circles.insert(targets.iter().filter(back).map(|module| module.join("::")).collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let module = |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        circles(&Files(files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect()).imports())
    }

    #[test]
    fn a_circle_is_found_through_any_form_of_an_import() {
        for (one, other) in [
            ("use crate::b::X;", "use crate::a::Y;"),
            ("use super::b::{X, Z as W};", "use crate::{a::{Y}, c};"),
            ("\nuse self::inner::Z;\nuse super::b;", "fn f() {}\nuse super::a::Y;"),
        ] {
            let circle = found(&[("", "pub mod a;"), ("a", one), ("b", other), ("c", "use std::io;")]);
            assert_eq!(circle, [["a", "b"]], "{one} {other}");
        }
    }

    #[test]
    fn a_name_is_of_the_module_that_has_it() {
        // The parent re-exports an item of a leaf: no circle.
        let files =
            [("a", "mod leaf;\npub use leaf::X;\nuse inner::Z;"), ("a::leaf", ""), ("a::inner", "use super::X;")];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
        let files = [("a", "use inner::Z;\nstruct X;"), ("a::inner", "use super::X;")];
        assert_eq!(found(&files), [["a", "a::inner"]]);
    }

    #[test]
    fn there_are_none() {
        check().expect("no file leads back to itself");
    }
}
