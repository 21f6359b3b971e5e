//! The floors inside the crates, as docs/architecture.md draws them: no module uses one above it, and none stand in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// Where a module stands in its crate: `["tcp", "rack"]`; empty for the root.
type Place = Vec<String>;

/// Which module uses which, by `use` lines and paths that begin with `crate` or `super`. Test code is left aside, and so is what a
/// macro makes.
type Graph = BTreeMap<Place, BTreeSet<Place>>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// The crates of the workspace with a library or a program, by name.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = std::fs::read_dir(workspace().join("crates")).expect("crates/ can be read");
    folders
        .map(|entry| entry.expect("crates/ can be read").path())
        .filter(|folder| folder.join("src/lib.rs").is_file())
        .map(|folder| (folder.file_name().expect("a folder has a name").to_string_lossy().into_owned(), folder))
        .collect()
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Reads the module at `place` and those inside it.
fn read(source: &Path, place: &Place, graph: &mut BTreeMap<Place, Vec<Place>>) {
    let text = std::fs::read_to_string(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let mut reader = Reader { place: place.clone(), uses: Vec::new() };
    reader.visit_file(&file);
    graph.insert(place.clone(), reader.uses);
    // `mod x;` in `a.rs` and in `a/mod.rs` both lie in `a/`.
    let named_after_folder = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| source.ends_with(name));
    let folder =
        if named_after_folder { source.parent().expect("a file is in a folder").to_owned() } else { source.with_extension("") };
    for item in &file.items {
        let Item::Mod(ItemMod { attrs, ident, content: None, .. }) = item else { continue };
        if only_for_tests(attrs) {
            continue;
        }
        let name = ident.to_string();
        let inside: Place = place.iter().cloned().chain([name.clone()]).collect();
        let ways = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
        // A module may lie elsewhere by `#[path]`; it is one file then.
        if let Some(source) = ways.iter().find(|way| way.is_file()) {
            read(source, &inside, graph);
        }
    }
}

struct Reader {
    place: Place,
    uses: Vec<Place>,
}

impl Reader {
    /// Takes down a path if it begins in this crate.
    fn note(&mut self, words: &[String]) {
        let mut place = self.place.clone();
        let mut words = words.iter().peekable();
        match words.peek().map(|word| word.as_str()) {
            Some("crate") => {
                place.clear();
                words.next();
            }
            Some("super") => {
                while words.next_if(|word| *word == "super").is_some() {
                    place.pop();
                }
            }
            _ => return,
        }
        place.extend(words.cloned());
        self.uses.push(place);
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |word: String| before.iter().cloned().chain([word]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &with(path.ident.to_string())),
            UseTree::Name(name) if name.ident == "self" => self.note(before),
            UseTree::Name(name) => self.note(&with(name.ident.to_string())),
            UseTree::Rename(rename) => self.note(&with(rename.ident.to_string())),
            UseTree::Glob(_) => self.note(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(tree, before)),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !only_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&words);
        visit::visit_path(self, path);
    }
}

/// What the root of a crate names of its modules, and where that comes from.
fn exports(root: &Path) -> BTreeMap<String, Place> {
    fn take_down(tree: &UseTree, before: &[String], exported: &mut BTreeMap<String, Place>) {
        let with = |word: String| before.iter().cloned().chain([word]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => take_down(&path.tree, &with(path.ident.to_string()), exported),
            UseTree::Name(name) => drop(exported.insert(name.ident.to_string(), with(name.ident.to_string()))),
            UseTree::Rename(rename) => drop(exported.insert(rename.rename.to_string(), with(rename.ident.to_string()))),
            UseTree::Glob(_) => {}
            UseTree::Group(group) => group.items.iter().for_each(|tree| take_down(tree, before, exported)),
        }
    }
    let text = std::fs::read_to_string(root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let mut exported = BTreeMap::new();
    for item in syn::parse_file(&text).expect("it was read before").items {
        if let Item::Use(item) = item {
            take_down(&item.tree, &[], &mut exported);
        }
    }
    exported
}

fn graph_of(root: &Path) -> Graph {
    let mut read_uses = BTreeMap::new();
    read(&root.join("src/lib.rs"), &Place::new(), &mut read_uses);
    let modules: BTreeSet<Place> = read_uses.keys().cloned().collect();
    let exported = exports(&root.join("src/lib.rs"));
    let module_of = |mut place: Place| {
        if let Some(origin) = place.first().and_then(|name| exported.get(name)) {
            place.clone_from(origin);
        }
        while !modules.contains(&place) {
            place.pop();
        }
        place
    };
    read_uses
        .iter()
        .map(|(place, uses)| (place.clone(), uses.iter().cloned().map(module_of).filter(|used| used != place).collect()))
        .collect()
}

/// The modules directly inside `parent` and which of its sisters each of them uses, with all that it contains.
fn sisters(graph: &Graph, parent: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let child = |place: &Place| place.strip_prefix(parent).and_then(|rest| rest.first()).cloned();
    let mut sisters: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, uses) in graph {
        let Some(name) = child(place) else { continue };
        let used = uses.iter().filter_map(child).filter(|used| *used != name).collect::<Vec<_>>();
        sisters.entry(name).or_default().extend(used);
    }
    sisters
}

/// A way from a module back to itself, if there is one.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        at: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|before| *before == at) {
            return Some(way[start..].iter().chain([&at]).map(|name| (*name).to_owned()).collect());
        }
        if !done.insert(at) {
            return None;
        }
        way.push(at);
        let found = graph.get(at)?.iter().find_map(|next| walk(graph, next, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(graph, start, &mut Vec::new(), &mut done))
}

/// The floors that docs/architecture.md draws, the lowest first: for each crate the modules of each floor.
fn floors() -> BTreeMap<String, Vec<Vec<String>>> {
    let text = std::fs::read_to_string(workspace().join("docs/architecture.md")).expect("docs/architecture.md can be read");
    let mut floors: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("```floors ") else { continue };
        let drawn = lines.by_ref().take_while(|line| *line != "```");
        let modules = |line: &str| line.rsplit(':').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        floors.insert(name.to_owned(), drawn.map(modules).collect());
    }
    floors
}

#[test]
fn no_modules_stand_in_a_circle() {
    let mut found = String::new();
    for (name, root) in crates() {
        let graph = graph_of(&root);
        let parents: BTreeSet<_> = graph.keys().filter_map(|place| place.split_last()).map(|(_, parent)| parent).collect();
        for parent in parents {
            if let Some(circle) = circle(&sisters(&graph, parent)) {
                writeln!(found, "{name}/{}: {}", parent.join("/"), circle.join(" -> ")).expect("a string takes it");
            }
        }
    }
    assert!(found.is_empty(), "modules that use each other in a circle:\n{found}");
}

#[test]
fn no_arrow_runs_up() {
    let floors = floors();
    let mut found = String::new();
    for (name, root) in crates() {
        let Some(floors) = floors.get(&name) else {
            panic!("docs/architecture.md draws no floors for the crate `{name}`: a block that begins with ```floors {name}");
        };
        let floor_of = |module: &str| floors.iter().position(|floor| floor.iter().any(|name| name == module));
        let modules = sisters(&graph_of(&root), &[]);
        for drawn in floors.iter().flatten().filter(|drawn| !modules.contains_key(*drawn)) {
            writeln!(found, "{name}: the floors name `{drawn}`, which is no module").expect("a string takes it");
        }
        for (module, uses) in &modules {
            let Some(floor) = floor_of(module) else {
                writeln!(found, "{name}: `{module}` stands on no floor").expect("a string takes it");
                continue;
            };
            for used in uses.iter().filter(|used| floor_of(used).is_some_and(|other| other > floor)) {
                writeln!(found, "{name}: `{module}` uses `{used}`, which stands above it").expect("a string takes it");
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn a_circle_is_found() {
    let graph = |arrows: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in arrows {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            graph.entry((*to).to_owned()).or_default();
        }
        graph
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    assert_eq!(circle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap(), ["b", "c", "b"]);
}

#[test]
fn uses_are_read() {
    let text = "use crate::a::{self, b::C}; use super::d::*; fn f() { crate::e::g(); }\n\
                #[cfg(test)] mod tests { use crate::h::I; }\n#[cfg(test)] use crate::j;";
    let mut reader = Reader { place: vec!["x".into(), "y".into()], uses: Vec::new() };
    reader.visit_file(&syn::parse_file(text).unwrap());
    let uses: Vec<_> = reader.uses.iter().map(|place| place.join("/")).collect();
    assert_eq!(uses, ["a", "a/b/C", "x/d", "e/g"]);
}
