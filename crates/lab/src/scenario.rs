//! A scenario: read, checked, changed, and made ready to run.

use crate::decode::decode;
use crate::error::{Error, InputError, Place};
use crate::expand::DEFAULT_DURATION;
use crate::extension::{known, take_failure, Known};
use crate::format::{Document, CHANNEL_ERRORS};
use crate::key::{point_key, run_key};
use crate::network::Network;
use crate::patterns::{digests, Files, LinkFiles};
use crate::tree::{Located, Value};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whyloss_transport::scheme::Catalogue;
use whyloss_transport::Duration;

/// Fields of which a table holds one at most.
const EXCLUSIVE: &[(&str, &[&str])] = &[
    ("channel", CHANNEL_ERRORS),
    ("data", CHANNEL_ERRORS),
    ("acks", CHANNEL_ERRORS),
    ("path", PACE),
    ("link", PACE),
    ("bottleneck", PACE),
    ("senders", PACE),
    ("receivers", PACE),
    ("forward", PACE),
    ("reverse", PACE),
];

const PACE: &[&str] = &["rate", "trace"];

/// A network, what is sent over it, and what is written down: checked and complete.
///
/// A scenario never changes: [`Scenario::with_override`] makes another one.
#[derive(Clone, Debug)]
pub struct Scenario {
    tree: Located,
    document: Arc<Document>,
    network: Arc<Network>,
    /// Directions of links that name files: few, where links are many.
    with_files: Arc<[(usize, usize)]>,
    /// What the names in it mean.
    known: Arc<Known>,
    /// Where relative paths start.
    base: PathBuf,
    name: String,
}

impl Scenario {
    /// Reads a scenario file. Relative paths in it start at its folder.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (tree, base) = read_tree(path)?;
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::new(tree, base, &stem)
    }

    /// Reads a scenario from TOML text; messages call it `origin`. Relative paths in it start at the working directory.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        Self::new(Located::from_toml(text, origin)?, PathBuf::new(), "scenario")
    }

    /// Takes over a scenario from JSON with the fields of the file; messages call it `origin`.
    pub fn from_json(json: &serde_json::Value, origin: &str) -> Result<Self, Error> {
        Self::new(Located::from_json(json, origin), PathBuf::new(), "scenario")
    }

    pub(crate) fn new(tree: Located, base: PathBuf, default_name: &str) -> Result<Self, Error> {
        let placed = |error: InputError| place(error, &tree);
        let document: Document = decode(&tree).map_err(placed)?;
        let known = known();
        // Parts are made to check what is said of them.
        drop(take_failure());
        let network = Network::new(&document, &known.catalogue).map_err(placed)?;
        if let Some(failure) = take_failure() {
            return Err(Error::Part(Box::new(failure)));
        }
        let name = if document.scenario.name.is_empty() { default_name.to_owned() } else { document.scenario.name.clone() };
        let with_files = with_files(&network);
        Ok(Self { tree, document: Arc::new(document), network: Arc::new(network), with_files, known, base, name })
    }

    /// The same scenario with relative paths starting at `base`.
    pub fn with_base(mut self, base: impl Into<PathBuf>) -> Self {
        self.base = base.into();
        self
    }

    /// The scenario with another value in one field, such as `link[0].rate`, `link[bottleneck].rate` or `path.forward.channel.ber`.
    /// A field that excludes others takes them away: a channel with a `pattern` has no `ber` any more.
    pub fn with_override(&self, field: &str, value: impl Into<Value>) -> Result<Self, Error> {
        self.with_node(field, Located::new(value, "override"))
    }

    /// The same for several fields, which are checked together.
    pub fn with_overrides<'a>(&self, overrides: impl IntoIterator<Item = (&'a str, Value)>) -> Result<Self, Error> {
        self.with_nodes(overrides.into_iter().map(|(field, value)| (field, Located::new(value, "override"))))
    }

    /// The scenario with an override from a command line, `FIELD=VALUE`. The value is a TOML value; quotes around a string may be left
    /// out. Relative paths in it start at the working directory.
    pub fn with_argument(&self, argument: &str) -> Result<Self, Error> {
        self.with_arguments([argument])
    }

    /// The same for several, which are checked together.
    pub fn with_arguments<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let overrides = arguments.into_iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        self.with_nodes(overrides)
    }

    pub(crate) fn with_node(&self, field: &str, value: Located) -> Result<Self, Error> {
        self.with_nodes(std::iter::once((field, value)))
    }

    pub(crate) fn with_nodes<'a>(&self, overrides: impl IntoIterator<Item = (&'a str, Located)>) -> Result<Self, Error> {
        let mut tree = self.tree.clone();
        for (field, value) in overrides {
            tree.set(field, value, EXCLUSIVE)?;
        }
        Self::new(tree, self.base.clone(), &self.name)
    }

    /// What its field `field` says, and null if it says nothing.
    pub(crate) fn says(&self, field: &str) -> &Value {
        self.tree.value_at(field)
    }

    /// Whether setting the field `over` takes away what its field `field` says.
    pub(crate) fn replaces(&self, over: &str, field: &str) -> bool {
        self.tree.replaces(over, field, EXCLUSIVE)
    }

    /// Where its relative paths start.
    pub(crate) fn folder(&self) -> &Path {
        &self.base
    }

    /// The name that its file gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All fields, defaults included.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The network written out.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What the names of algorithms in it mean.
    pub fn catalogue(&self) -> &Catalogue {
        &self.known.catalogue
    }

    /// All fields as JSON, with the names of the file; [`Scenario::from_json`] takes it back.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(&*self.document).expect("a document has only string keys and finite numbers")
    }

    /// The simulated time at which a run ends at the latest.
    pub fn duration(&self) -> Duration {
        self.document.scenario.duration.unwrap_or(DEFAULT_DURATION)
    }

    /// Whether there is something to simulate. A scenario without flows is a network for real hosts.
    pub(crate) fn check_something_is_sent(&self) -> Result<(), InputError> {
        if self.document.flow.is_empty() {
            let error = InputError::new("nothing is sent: there is no flow").at("flow").allowed("at least one [[flow]]");
            return Err(self.place(error));
        }
        Ok(())
    }

    /// Completes an error with the place of its field.
    pub(crate) fn place(&self, error: InputError) -> InputError {
        place(error, &self.tree)
    }

    /// Reads the files that links name in run `run`: one entry for each direction of each link that names any.
    pub(crate) fn files(&self, run: u32, cache: &Files) -> Result<Vec<LinkFiles>, Error> {
        let mut found = Vec::with_capacity(self.with_files.len());
        for &(link, way) in &*self.with_files {
            let Some(ways) = &self.network.links[link].ways else { continue };
            let said = &ways[way];
            let mut files = LinkFiles { link, way, pattern: None, trace: None, digest: String::new() };
            if let Some(template) = &said.spec.channel.pattern {
                let field = format!("{}.pattern", said.channel_field);
                let read = cache.pattern(&self.base.join(for_run(template, run)));
                let (pattern, digest) = read.map_err(|error| place(error.at(field), &self.tree))?;
                files.pattern = Some(pattern);
                write!(files.digest, "{digest}").expect("a string takes everything");
            }
            if let Some(template) = &said.spec.trace {
                let read = cache.trace(&self.base.join(for_run(template, run)));
                let (trace, digest) = read.map_err(|error| place(error.at(&said.trace_field), &self.tree))?;
                files.trace = Some(trace);
                write!(files.digest, " trace {digest}").expect("a string takes everything");
            }
            found.push(files);
        }
        Ok(found)
    }

    /// A digest of everything that decides run `run`: all fields, the contents of the files that they name, and the version of the engine.
    ///
    /// # Errors
    /// If such a file cannot be read.
    pub fn digest(&self, run: u32) -> Result<String, Error> {
        let files = self.files(run, &Files::default())?;
        Ok(run_key(&point_key(&self.canonical()), run, &digests(&files)).to_hex().to_string())
    }

    /// Everything that decides results, as text, apart from the number of the run and the contents of files.
    pub(crate) fn canonical(&self) -> String {
        let mut document = (*self.document).clone();
        document.scenario.name.clear();
        document.scenario.description.clear();
        document.output.capture.clear();
        let mut json = serde_json::to_value(&document).expect("as in to_json");
        blank_files(&mut json);
        let own = self.document.flow.iter().map(|flow| self.known.digest(&flow.selection()));
        json.to_string() + &own.collect::<String>()
    }
}

/// Octets of a scenario or a sweep, at most: those of the largest are a few.
const MOST_OCTETS: u64 = 64 << 20;

/// Reads a TOML or JSON file as a tree, with the folder where its relative paths start.
pub(crate) fn read_tree(path: &Path) -> Result<(Located, PathBuf), Error> {
    let origin = path.display().to_string();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_OCTETS + 1).read_to_string(&mut text));
    let octets = read.map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            let place = Place { origin: origin.as_str().into(), line: 0 };
            InputError { place, ..InputError::new("there is no such file") }.into()
        }
        std::io::ErrorKind::IsADirectory | std::io::ErrorKind::InvalidData => {
            let folder = source.kind() == std::io::ErrorKind::IsADirectory;
            let place = Place { origin: origin.as_str().into(), line: 0 };
            let problem = if folder { "this is a folder" } else { "this is no text in UTF-8" };
            InputError { place, ..InputError::new(problem).allowed("a file in TOML or JSON") }.into()
        }
        _ => Error::Read { path: path.to_owned(), source },
    })?;
    if octets as u64 > MOST_OCTETS {
        let place = Place { origin: origin.as_str().into(), line: 0 };
        let error = InputError::new("this is too large for a scenario or a sweep").allowed(format!("{} MiB", MOST_OCTETS >> 20));
        return Err(InputError { place, ..error }.into());
    }
    let tree = if path.extension().is_some_and(|e| e == "json") {
        let json = serde_json::from_str(&text).map_err(|error| {
            let place = Place { origin: origin.as_str().into(), line: error.line() as u32 };
            InputError { place, ..InputError::new(format!("not valid JSON: {error}")) }
        })?;
        Located::from_json(&json, &origin)
    } else {
        Located::from_toml(&text, &origin)?
    };
    Ok((tree, path.parent().map_or_else(PathBuf::new, Path::to_owned)))
}

/// Fields that name files.
const FILES: &[&str] = &["pattern", "trace"];

/// Makes a relative path to a pattern or a trace start at `base`, wherever the scenario lies.
pub(crate) fn anchor(field: &str, node: &mut Located, base: &Path) {
    match &mut node.value {
        Value::String(path) if field.rsplit('.').next().is_some_and(|last| FILES.contains(&last)) => {
            *path = base.join(&*path).to_string_lossy().into_owned();
        }
        Value::Table(fields) => fields.iter_mut().for_each(|(name, node)| anchor(name, node, base)),
        _ => {}
    }
}

/// Field and value of an override from a command line. Relative paths in it start at the working directory.
pub(crate) fn argument(argument: &str) -> Result<(&str, Located), InputError> {
    let (field, value) = argument.split_once('=').ok_or_else(|| {
        InputError::new("not an override")
            .found(format!("\"{argument}\""))
            .allowed("FIELD=VALUE, such as link[0].rate=\"1 Mbps\"")
    })?;
    let mut node = Located::from_argument(value.trim(), "--set");
    anchor(field.trim(), &mut node, &std::env::current_dir().unwrap_or_default());
    Ok((field.trim(), node))
}

/// Completes an error with the place of its field.
fn place(error: InputError, tree: &Located) -> InputError {
    if error.place != Place::default() {
        return error;
    }
    let node = tree.nearest_to(&error.field);
    InputError { place: node.place.clone(), ..error }
}

/// Puts the number of the run into a path.
fn for_run(template: &str, run: u32) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("{run") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = from.find('}') else { break };
        match from[4..end].strip_prefix(":0").map(str::parse::<usize>) {
            None if end == 4 => out += &run.to_string(),
            Some(Ok(width)) => write!(out, "{run:0width$}").expect("a string takes everything"),
            _ => out += &from[..=end],
        }
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    out
}

fn blank_files(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                if FILES.contains(&name.as_str()) {
                    *field = true.into();
                } else {
                    blank_files(field);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(blank_files),
        _ => {}
    }
}

/// The directions of links that name files, in order: link and way.
fn with_files(network: &Network) -> Arc<[(usize, usize)]> {
    let directions = network.links.iter().enumerate().flat_map(|(link, spec)| {
        let ways = spec.ways.iter().flat_map(|ways| ways.iter()).enumerate();
        ways.filter(|(_, said)| said.spec.channel.pattern.is_some() || said.spec.trace.is_some()).map(move |(way, _)| (link, way))
    });
    directions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::BitRate;

    const MINIMAL: &str = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '99 pkt'\n[[flow]]\nsize = '1 MB'\n";

    #[test]
    fn the_number_of_the_run_goes_into_paths() {
        assert_eq!(for_run("a-{run}.bits", 7), "a-7.bits");
        assert_eq!(for_run("{run:03}/{run}", 7), "007/7");
        assert_eq!(for_run("{runner}", 7), "{runner}");
        assert_eq!(for_run("plain{", 7), "plain{");
    }

    #[test]
    fn json_and_toml_say_the_same() {
        let scenario = Scenario::from_toml(MINIMAL, "t").unwrap();
        let again = Scenario::from_json(&scenario.to_json(), "j").unwrap();
        assert_eq!(scenario.document(), again.document());
    }

    #[test]
    fn names_and_captures_do_not_decide_results_but_the_seed_does() {
        let scenario = Scenario::from_toml(MINIMAL, "t").unwrap();
        let same = scenario.with_override("scenario.name", "other").unwrap();
        let other = scenario.with_override("scenario.seed", 2).unwrap();
        assert_eq!(scenario.canonical(), same.canonical());
        assert_ne!(scenario.canonical(), other.canonical());
    }

    #[test]
    fn an_argument_may_leave_out_quotes() {
        let scenario = Scenario::from_toml(MINIMAL, "t").unwrap();
        let changed = scenario.with_argument("path.rate=384 kbps").unwrap();
        assert_eq!(changed.network().links[1].ways.as_ref().unwrap()[0].spec.rate, BitRate::from_bps(384_000));
        let error = scenario.with_argument("path.rte=384 kbps").unwrap_err();
        assert!(error.to_string().starts_with("--set: path.rte: unknown field (did you mean `rate`?)"), "{error}");
    }
}
