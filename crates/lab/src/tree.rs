//! A document as a tree of values that know where they stand.
//!
//! TOML and JSON both become a [`Located`]; overrides and sweeps change nodes by path; [`crate::decode`] turns a node into a typed value.

use crate::error::{nearest, InputError, Place};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The value itself, with the places of what is in it.
    pub value: Value,
    /// Where it begins in the file, for messages.
    pub place: Place,
}

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON's null: as if the field were not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// Text, as TOML writes it between quotes.
    String(String),
    /// Values in a row, each with its place.
    Array(Vec<Located>),
    /// Fields by name, each with its place.
    Table(BTreeMap<String, Located>),
}

impl Value {
    /// The value as a message shows it.
    pub fn found(&self) -> String {
        match self {
            Self::Array(items) => format!("a list of {}", items.len()),
            Self::Table(fields) if fields.is_empty() => "an empty table".to_owned(),
            Self::Table(fields) => {
                format!("a table with {}", fields.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::String(value) => write!(f, "\"{value}\""),
            Self::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, item.value)?;
                }
                f.write_str("]")
            }
            Self::Table(fields) => {
                f.write_str("{")?;
                for (i, (name, field)) in fields.iter().enumerate() {
                    write!(f, "{}{name} = {}", if i == 0 { " " } else { ", " }, field.value)?;
                }
                f.write_str(" }")
            }
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $make:expr),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                #[allow(clippy::redundant_closure_call)]
                ($make)(value)
            }
        }
    )*};
}

value_from! {
    bool => Self::Bool,
    i64 => Self::Integer,
    i32 => |value| Self::Integer(i64::from(value)),
    u32 => |value| Self::Integer(i64::from(value)),
    f64 => Self::Float,
    String => Self::String,
    &str => |value: &str| Self::String(value.to_owned()),
}

impl Located {
    /// An empty table from `origin`.
    pub fn empty(origin: &str) -> Self {
        Self { value: Value::Table(BTreeMap::new()), place: Place { origin: origin.into(), line: 0 } }
    }

    /// A value that stands nowhere in a file, such as one given on a command line.
    pub fn new(value: impl Into<Value>, origin: &str) -> Self {
        Self { value: value.into(), place: Place { origin: origin.into(), line: 0 } }
    }

    /// Reads a TOML document; `origin` is what messages call it.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, InputError> {
        let origin: Arc<str> = origin.into();
        let lines = Lines::new(text);
        let document = toml::de::DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(0, |span| lines.of(span.start));
            let mut found = InputError::new(format!("not valid TOML: {}", error.message().trim().replace('\n', ", ")));
            found.place = Place { origin: origin.clone(), line };
            found
        })?;
        let whole = toml::de::DeValue::Table(document.into_inner());
        let mut node = from_de(&whole, 0, &lines, &origin)?;
        node.place.line = 0;
        Ok(node)
    }

    /// Reads one TOML value, such as `"1 Mbps"`, `[1, 2]` or `{ ber = 1e-6 }`. Text that is no TOML value is taken as a string, so that
    /// quotes can be left out on a command line.
    pub fn from_argument(text: &str, origin: &str) -> Self {
        let document = format!("value = {text}");
        Self::from_toml(&document, origin)
            .ok()
            .and_then(|node| match node.value {
                Value::Table(mut fields) if fields.len() == 1 => fields.remove("value"),
                _ => None,
            })
            .map_or_else(|| Self::new(text, origin), |node| node.at_origin(origin))
    }

    /// Takes over a JSON value.
    pub fn from_json(json: &serde_json::Value, origin: &str) -> Self {
        let origin: Arc<str> = origin.into();
        from_json(json, &origin)
    }

    /// The tree as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(value) => value.clone().into(),
            Value::Array(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(fields) => fields.iter().map(|(name, node)| (name.clone(), node.to_json())).collect(),
        }
    }

    /// The same tree, said to stand at `origin` with no lines.
    fn at_origin(mut self, origin: &str) -> Self {
        fn walk(node: &mut Located, place: &Place) {
            node.place = place.clone();
            match &mut node.value {
                Value::Array(items) => items.iter_mut().for_each(|item| walk(item, place)),
                Value::Table(fields) => fields.values_mut().for_each(|field| walk(field, place)),
                _ => {}
            }
        }
        walk(&mut self, &Place { origin: origin.into(), line: 0 });
        self
    }

    /// The field of a table.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The node at `path`, or the deepest one on the way there.
    pub fn nearest_to(&self, path: &str) -> &Self {
        let Ok(steps) = parse_path(path) else { return self };
        let mut node = self;
        for step in steps {
            match step.find(node) {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// What stands at `path`: null where nothing does.
    pub fn value_at(&self, path: &str) -> &Value {
        self.resolve(path).ok().and_then(|(_, node)| node).map_or(&Value::Null, |node| &node.value)
    }

    /// Whether setting the field `over` takes away what stands at `path`: it is the same field, one around it, or one that excludes it.
    pub fn replaces(&self, over: &str, path: &str, exclusive: &[(&str, &[&str])]) -> bool {
        let (Ok((over, _)), Ok((path, _))) = (self.resolve(over), self.resolve(path)) else { return false };
        let (last, way) = over.split_last().expect("a path has at least one step");
        let Some((at, _)) = path.strip_prefix(way).and_then(<[Step]>::split_first) else { return false };
        let parent = way.iter().rev().find_map(Step::field);
        let excludes = |(of, group): &(&str, &[&str])| {
            parent == Some(*of) && [last, at].iter().all(|step| step.field().is_some_and(|name| group.contains(&name)))
        };
        last == at || exclusive.iter().any(excludes)
    }

    /// The steps of `path`, elements of lists by their positions where they are there, and what stands at its end.
    fn resolve(&self, path: &str) -> Result<(Vec<Step>, Option<&Self>), String> {
        let mut steps = parse_path(path)?;
        let mut node = Some(self);
        for step in &mut steps {
            let list = node.map_or(&[][..], Self::items);
            if let Some(index) = step.index_in(list) {
                *step = Step::Index(index);
            }
            node = node.and_then(|node| step.find(node));
        }
        Ok((steps, node))
    }

    /// The elements of a list.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// The text in the field `name`.
    fn name(&self) -> Option<&str> {
        match self.field("name").map(|name| &name.value) {
            Some(Value::String(own)) => Some(own),
            _ => None,
        }
    }

    /// Puts `value` at `path`, making tables on the way. List elements must exist; they are named by position (`link[0]`) or by their
    /// `name` field (`link[bottleneck]`).
    ///
    /// `exclusive` names fields of which a table holds one at most: setting one removes the others.
    pub fn set(&mut self, path: &str, value: Self, exclusive: &[(&str, &[&str])]) -> Result<(), InputError> {
        let place = value.place.clone();
        let misplaced = |error: InputError| InputError { place: place.clone(), ..error.at(path) };
        let steps = parse_path(path).map_err(|problem| misplaced(InputError::new(problem)))?;
        let (last, way) = steps.split_last().expect("a path has at least one step");
        let mut node = self;
        let mut walked = String::new();
        let mut parent = String::new();
        for step in way {
            node = step.enter(node, &mut walked, &place).map_err(misplaced)?;
            if let Step::Field(name) = step {
                parent.clone_from(name);
            }
        }
        if matches!(node.value, Value::Null) {
            node.value = Value::Table(BTreeMap::new());
        }
        match (&mut node.value, last) {
            (Value::Table(fields), Step::Field(name)) => {
                if let Some((_, group)) = exclusive.iter().find(|(of, group)| *of == parent && group.contains(&name.as_str())) {
                    fields.retain(|other, _| !group.contains(&other.as_str()));
                }
                fields.insert(name.clone(), value);
            }
            (_, last) => *last.enter(node, &mut walked, &place).map_err(misplaced)? = value,
        }
        Ok(())
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    Name(String),
}

impl Step {
    fn field(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            _ => None,
        }
    }

    /// The position of the element of `items` that it names.
    fn index_in(&self, items: &[Located]) -> Option<usize> {
        match self {
            Self::Name(name) => items.iter().position(|item| item.name() == Some(name)),
            _ => None,
        }
    }

    /// The node below `node`, if it is there.
    fn find<'a>(&self, node: &'a Located) -> Option<&'a Located> {
        match self {
            Self::Field(name) => node.field(name),
            Self::Index(index) => node.items().get(*index),
            Self::Name(_) => node.items().get(self.index_in(node.items())?),
        }
    }

    /// The node below `node`; what is not there yet stands at `place`, where it is asked for.
    fn enter<'a>(&self, node: &'a mut Located, walked: &mut String, place: &Place) -> Result<&'a mut Located, InputError> {
        match (self, &mut node.value) {
            (Self::Field(name), value @ (Value::Table(_) | Value::Null)) => {
                if matches!(value, Value::Null) {
                    *value = Value::Table(BTreeMap::new());
                }
                let Value::Table(fields) = value else { unreachable!("made a table above") };
                if !walked.is_empty() {
                    walked.push('.');
                }
                walked.push_str(name);
                Ok(fields.entry(name.clone()).or_insert_with(|| Located { value: Value::Null, place: place.clone() }))
            }
            (Self::Index(index), Value::Array(items)) => {
                let count = items.len();
                let problem = match count {
                    0 => format!("`{walked}` is empty"),
                    1 => format!("`{walked}` has only element 0"),
                    _ => format!("`{walked}` has only elements 0 to {}", count - 1),
                };
                walked.extend(["[", &index.to_string(), "]"]);
                items.get_mut(*index).ok_or_else(|| InputError::new(problem))
            }
            (Self::Name(name), Value::Array(items)) => {
                let Some(found) = self.index_in(items) else {
                    let names: Vec<_> = items.iter().filter_map(Located::name).collect();
                    let allowed = if names.is_empty() { "positions, such as [0]".to_owned() } else { names.join(", ") };
                    return Err(InputError::new(format!("no element of `{walked}` is named `{name}`"))
                        .nearest(nearest(name, names.iter().copied()))
                        .allowed(allowed));
                };
                walked.extend(["[", name, "]"]);
                Ok(&mut items[found])
            }
            (Self::Index(_) | Self::Name(_), Value::Null) => {
                Err(InputError::new(format!("there is no list `{walked}` in the scenario")))
            }
            (_, other) => Err(InputError::new(format!("`{walked}` is {}, which has nothing inside", other.found()))),
        }
    }
}

/// Splits `link[0].rate` into its steps.
fn parse_path(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let wrong = || format!("`{path}` is not a field path; one looks like `link[0].rate` or `path.forward.channel.ber`");
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = rest[..end].trim();
        if name.is_empty() {
            return Err(wrong());
        }
        steps.push(Step::Field(name.trim_matches('"').to_owned()));
        rest = &rest[end..];
        while let Some(inside) = rest.strip_prefix('[') {
            let close = inside.find(']').ok_or_else(wrong)?;
            let index = inside[..close].trim();
            if index.is_empty() {
                return Err(wrong());
            }
            steps.push(index.parse().map_or_else(|_| Step::Name(index.to_owned()), Step::Index));
            rest = &inside[close + 1..];
        }
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(steps),
            None => return Err(wrong()),
        }
    }
}

/// Offsets in octets at which the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn of(&self, offset: usize) -> u32 {
        self.0.partition_point(|start| *start <= offset) as u32
    }
}

fn from_de(value: &toml::de::DeValue<'_>, offset: usize, lines: &Lines, origin: &Arc<str>) -> Result<Located, InputError> {
    use toml::de::DeValue;
    let place = Place { origin: origin.clone(), line: lines.of(offset) };
    let wrong = |problem: &str, found: String| InputError { place: place.clone(), ..InputError::new(problem).found(found) };
    let value = match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| wrong("a whole number does not fit 64 bits", number.as_str().to_owned()))?,
        ),
        DeValue::Float(number) => {
            Value::Float(number.as_str().parse().map_err(|_| wrong("not a number", number.as_str().to_owned()))?)
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(date) => return Err(wrong("dates have no place here", date.to_string())),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| from_de(item.get_ref(), item.span().start, lines, origin)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(fields) => {
            let mut table = BTreeMap::new();
            for (name, field) in fields {
                let mut node = from_de(field.get_ref(), field.span().start, lines, origin)?;
                // A table that dotted keys make has no text of its own: its first key stands for it.
                if node.place.line <= 1 {
                    node.place.line = lines.of(name.span().start);
                }
                table.insert(name.get_ref().to_string(), node);
            }
            Value::Table(table)
        }
    };
    Ok(Located { value, place })
}

fn from_json(json: &serde_json::Value, origin: &Arc<str>) -> Located {
    use serde_json::Value as Json;
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN)), Value::Integer),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(|item| from_json(item, origin)).collect()),
        Json::Object(fields) => {
            Value::Table(fields.iter().map(|(name, field)| (name.clone(), from_json(field, origin))).collect())
        }
    };
    Located { value, place: Place { origin: origin.clone(), line: 0 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[path]\nrate = '1 Mbps'\nforward.channel.ber = 1e-6\n\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'\n";

    #[test]
    fn values_know_their_lines() {
        let node = Located::from_toml(TEXT, "t").unwrap();
        assert_eq!(node.nearest_to("path.rate").place.line, 2);
        assert_eq!(node.nearest_to("path.forward.channel.ber").place.line, 3);
        assert_eq!(node.nearest_to("link[1].name").place.line, 8);
        assert_eq!(node.nearest_to("link[1].rate").place.line, 7);
    }

    #[test]
    fn setting_makes_tables_and_finds_elements_by_name() {
        let mut node = Located::from_toml(TEXT, "t").unwrap();
        node.set("link[b].forward.rate", Located::new("2 Mbps", "--set"), &[]).unwrap();
        assert_eq!(node.nearest_to("link[1].forward.rate").value, Value::from("2 Mbps"));
        let error = node.set("link[c].rate", Located::new(1, "--set"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "--set: link[c].rate: no element of `link` is named `c`; allowed: a, b");
        let error = node.set("link[2].rate", Located::new(1, "--set"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "--set: link[2].rate: `link` has only elements 0 to 1");
    }

    #[test]
    fn one_of_several_exclusive_fields_replaces_the_others() {
        let mut node = Located::from_toml(TEXT, "t").unwrap();
        node.set("path.forward.channel.loss", Located::new("1 %", "s"), &[("channel", &["ber", "loss"])]).unwrap();
        assert_eq!(node.nearest_to("path.forward.channel").value.to_string(), "{ loss = \"1 %\" }");
    }

    #[test]
    fn a_field_replaces_itself_what_is_in_it_and_what_it_excludes() {
        let node = Located::from_toml(TEXT, "t").unwrap();
        let replaces = |over, path| node.replaces(over, path, &[("channel", &["ber", "loss"])]);
        assert!(replaces("path.rate", "path.rate") && replaces("path", "path.rate"));
        assert!(replaces("link[b].rate", "link[1].rate") && replaces("link", "link[b].rate") && replaces("link[1]", "link[b]"));
        assert!(replaces("path.forward.channel.loss", "path.forward.channel.ber"));
        assert!(!replaces("path.rate", "path") && !replaces("path.rate", "path.delay"));
        assert!(!replaces("link[a].rate", "link[1].rate") && !replaces("link[c].rate", "link[1].rate"));
        assert!(!replaces("path.reverse.channel.loss", "path.forward.channel.ber"));
        assert_eq!(node.value_at("link[b].name"), &Value::from("b"));
        assert_eq!(node.value_at("path.delay"), &Value::Null);
    }

    #[test]
    fn an_argument_is_a_toml_value_or_a_bare_string() {
        assert_eq!(Located::from_argument("3", "s").value, Value::Integer(3));
        assert_eq!(Located::from_argument("1 Mbps", "s").value, Value::from("1 Mbps"));
        assert_eq!(Located::from_argument("patterns/1.bits", "s").value, Value::from("patterns/1.bits"));
        assert_eq!(Located::from_argument("'a b'", "s").value, Value::from("a b"));
    }

    #[test]
    fn paths_that_are_none_are_refused() {
        for path in ["", ".a", "a.", "a[", "a[]", "a]b", "a[0]b"] {
            assert!(parse_path(path).is_err() || path == "a]b", "{path}");
        }
    }
}
