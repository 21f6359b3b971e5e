//! What a name means: schemes, parts, profiles, fields of the scenario file.

use crate::error::{nearest, Error, InputError};
use crate::extension::known;
use crate::format::schema;
use crate::sweep::schema as sweep_schema;
use serde::Serialize;
use serde_json::Value as Json;
use whyloss_sim::{middlebox, Cause, Truth};
use whyloss_transport::kit::{self, Notes, Parameter, Part};
use whyloss_transport::scheme::{Row, Scheme};
use whyloss_transport::{datagram, tcp};

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The name that was asked for, or a path that ends in it.
    pub name: String,
    /// What it is: `scheme`, `congestion`, `differentiator`, `reaction`, `timeout`, `receiver`, `datagram`, `middlebox`, `profile`, `field`.
    pub kind: &'static str,
    /// What it does or means.
    pub summary: String,
    /// Where it comes from; empty for fields.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// Name and meaning of what belongs to it: the parts of a scheme, the parameters of a part, the fields of a table, what a field may
    /// be.
    pub details: Vec<(String, String)>,
    /// What its documentation says beyond that, by heading: `place`, `idea`, `formula`, `threshold`, `fails`, `errata`. Only what there is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<(&'static str, String)>,
    /// The parameters of a differentiator that trade its accuracy on one cause of losses for that on the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
}

/// A parameter that trades one accuracy of a differentiator for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Threshold {
    /// Name of the parameter, as scenarios set it.
    pub parameter: &'static str,
    /// What a larger value takes more losses for: `corruption` or `congestion`.
    pub larger: &'static str,
    /// The score at which the value x cuts: `score` x, `complement` 1 - x, `inverse` 1/x, `falling` 1/(1 + x), `rising` x/(1 + x), `own` if that takes
    /// more than x, `nowhere` if x moves the scores instead.
    pub cut: &'static str,
}

/// What may stand in `true_cause` of a loss that happened, with its `true_class`.
pub fn causes() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.iter().filter_map(|&cause| Some((cause.name(), Truth::Lost(cause).class()?))).collect()
}

/// Descriptions of all schemes, those of extensions included.
pub fn schemes() -> Vec<Description> {
    known().catalogue.rows().filter_map(|row| if let Row::Scheme(row) = row { Some(scheme(row)) } else { None }).collect()
}

/// All parts of all roles.
pub fn parts() -> Vec<Description> {
    let known = known();
    let described = |row| match row {
        Row::Congestion(row) => Some(part("congestion", row)),
        Row::AtSender(row) => Some(placed(part("differentiator", row), "sender")),
        Row::AtReceiver(row) => Some(placed(part("differentiator", row), "receiver")),
        Row::Reaction(row) => Some(part("reaction", row)),
        Row::Timeout(row) => Some(part("timeout", row)),
        Row::Receiver(row) => Some(part("receiver", row)),
        // Schemes, which have a list of their own.
        _ => None,
    };
    let datagrams = datagram::TABLE.iter().map(|row| part("datagram", row));
    let middleboxes = middlebox::TABLE.iter().map(|row| part("middlebox", row));
    known.catalogue.rows().filter_map(described).chain(datagrams).chain(middleboxes).collect()
}

/// Descriptions of all profiles of TCP.
pub fn profiles() -> Vec<Description> {
    tcp::PROFILES
        .iter()
        .map(|(name, make)| {
            let config = make();
            let details = [
                ("mss", config.mss.to_string()),
                ("initial_window", config.initial_window.to_string()),
                ("receive_buffer", format!("{} B", config.receive_buffer)),
                ("sack", config.sack.to_string()),
                ("timestamps", config.timestamps.to_string()),
                ("recovery", format!("{:?}", config.recovery).to_lowercase()),
                ("min_rto", config.min_rto.to_string()),
            ];
            Description {
                name: (*name).to_owned(),
                kind: "profile",
                summary: "A set of values for every field of `flow.tcp`.".to_owned(),
                reference: String::new(),
                details: details.into_iter().map(|(field, value)| (field.to_owned(), value)).collect(),
                notes: Vec::new(),
                thresholds: Vec::new(),
            }
        })
        .collect()
}

fn scheme(scheme: &Scheme) -> Description {
    let parts = [
        ("congestion", scheme.congestion),
        ("differentiator", scheme.differentiator),
        ("reaction", scheme.reaction),
        ("timeout", scheme.timeout),
        ("receiver", scheme.receiver),
    ];
    Description {
        name: scheme.name.to_owned(),
        kind: "scheme",
        summary: scheme.summary.to_owned(),
        reference: scheme.reference.to_owned(),
        details: parts.into_iter().map(|(role, part)| (role.to_owned(), part.to_owned())).collect(),
        notes: Vec::new(),
        thresholds: Vec::new(),
    }
}

fn placed(mut description: Description, place: &str) -> Description {
    description.notes.insert(0, ("place", place.to_owned()));
    description
}

fn part<T: ?Sized>(kind: &'static str, part: &Part<T>) -> Description {
    Description {
        name: part.name.to_owned(),
        kind,
        summary: part.summary.to_owned(),
        reference: part.reference.to_owned(),
        details: part.parameters.iter().map(|p| (p.name.to_owned(), parameter(p))).collect(),
        notes: notes(&part.notes),
        thresholds: part.thresholds.iter().map(threshold).collect(),
    }
}

fn threshold(threshold: &kit::Threshold) -> Threshold {
    let kit::Threshold { parameter, larger, cut } = *threshold;
    Threshold { parameter, larger: larger.name(), cut: cut.name() }
}

fn notes(notes: &Notes) -> Vec<(&'static str, String)> {
    let Notes { idea, formula, threshold, fails, errata } = *notes;
    let all = [("idea", idea), ("formula", formula), ("threshold", threshold), ("fails", fails), ("errata", errata)];
    all.into_iter().filter(|(_, text)| !text.is_empty()).map(|(heading, text)| (heading, text.to_owned())).collect()
}

fn parameter(parameter: &Parameter) -> String {
    let Parameter { summary, kind, .. } = parameter;
    format!("{}. Default: {}; allowed: {kind}.", summary.trim_end_matches('.'), kind.default_value())
}

/// Everything that is called `name`: a scheme, parts, a profile, or a field such as `link.rate`. Of a field, the last steps of its path
/// are enough: `rate` finds the rate of each kind of link.
pub fn describe(name: &str) -> Result<Vec<Description>, Error> {
    if name.is_empty() {
        let allowed = "the name of a scheme, a part or a profile, or a field such as link.rate";
        return Err(InputError::new("nothing has an empty name").allowed(allowed).into());
    }
    let everything = || schemes().into_iter().chain(parts()).chain(profiles());
    // The name of a role stands for all its parts where it is also that of a table of the scenario.
    let named = |description: &Description| description.name == name || (name == "middlebox" && description.kind == name);
    let mut found: Vec<_> = everything().filter(named).collect();
    found.extend(field(&schema(), name));
    if found.is_empty() {
        found.extend(field(&sweep_schema(), name));
    }
    if found.is_empty() {
        found = fields_ending_in(name);
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<String> = everything().map(|description| description.name).collect();
    field_paths(&schema(), "", &schema(), 0, &mut names);
    names.sort();
    names.dedup();
    let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
    let datagrams = datagram::TABLE.iter().map(|row| row.name.to_owned());
    let schemes: Vec<_> = schemes().into_iter().map(|scheme| scheme.name).chain(datagrams).collect();
    Err(InputError::new("nothing is called that")
        .found(format!("\"{name}\""))
        .nearest(near)
        .allowed(format!("a scheme ({}), a part, a profile, or a field such as link.rate", schemes.join(", ")))
        .into())
}

/// The fields whose paths end in the steps of `name`; those that mean the same are told once, by the shortest path.
fn fields_ending_in(name: &str) -> Vec<Description> {
    let (root, ending) = (schema(), format!(".{name}"));
    let mut paths = Vec::new();
    field_paths(&root, "", &root, 0, &mut paths);
    paths.sort_by_key(String::len);
    let mut found: Vec<Description> = Vec::new();
    for description in paths.iter().filter(|path| path.ends_with(&ending)).filter_map(|path| field(&root, path)) {
        if !found.iter().any(|known| known.summary == description.summary) {
            found.push(description);
        }
    }
    found
}

/// The field at `path` of a schema; positions in lists may be left out.
fn field(root: &Json, path: &str) -> Option<Description> {
    let mut schema = root;
    let mut summary = "";
    for step in path.split('.') {
        let step = step.split('[').next().unwrap_or(step);
        schema = resolve(root, schema).get("properties")?.get(step)?;
        summary = schema.get("description").and_then(Json::as_str).unwrap_or(summary);
        schema = resolve(root, schema);
    }
    let mut details = Vec::new();
    if let Some(allowed) = schema.get("description").and_then(Json::as_str).filter(|text| *text != summary) {
        details.push(("allowed".to_owned(), allowed.to_owned()));
    }
    for (name, inner) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        details.push((name.clone(), inner.get("description").and_then(Json::as_str).unwrap_or_default().to_owned()));
    }
    for option in schema.get("oneOf").and_then(Json::as_array).into_iter().flatten() {
        let name = option.get("const").and_then(Json::as_str).map(|word| format!("\"{word}\""));
        let key = || option.get("required").and_then(|r| r.get(0)).and_then(Json::as_str).map(|key| format!("{{ {key} = … }}"));
        let meaning = option.get("description").and_then(Json::as_str).unwrap_or_default();
        details.extend(name.or_else(key).map(|name| (name, meaning.to_owned())));
    }
    let (name, summary) = (path.to_owned(), summary.to_owned());
    Some(Description {
        name,
        kind: "field",
        summary,
        reference: String::new(),
        details,
        notes: Vec::new(),
        thresholds: Vec::new(),
    })
}

/// Follows references, lists and options to the schema of what is inside.
fn resolve<'a>(root: &'a Json, mut schema: &'a Json) -> &'a Json {
    loop {
        let next = if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
        } else if let Some(items) = schema.get("items") {
            Some(items)
        } else {
            let options = schema.get("anyOf").and_then(Json::as_array);
            options.and_then(|options| options.iter().find(|option| option.get("$ref").is_some()))
        };
        match next {
            Some(next) => schema = next,
            None => return schema,
        }
    }
}

fn field_paths(root: &Json, prefix: &str, schema: &Json, depth: usize, names: &mut Vec<String>) {
    if depth > 5 {
        return;
    }
    for (name, inner) in resolve(root, schema).get("properties").and_then(Json::as_object).into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        names.push(path.clone());
        field_paths(root, &path, inner, depth + 1, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_names_its_parts() {
        let found = describe("checksum-ld").unwrap();
        assert!(found[0].details.contains(&("receiver".to_owned(), "checksum".to_owned())));
    }

    #[test]
    fn datagram_transports_tell_their_modes() {
        for name in ["dccp-ccid2", "dccp-ccid3"] {
            let found = describe(name).unwrap();
            assert_eq!(found[0].kind, "datagram");
            assert!(found[0].details.iter().any(|(field, meaning)| field == "mode" && meaning.contains("rfc, differentiating")));
        }
    }

    #[test]
    fn a_field_is_found_by_its_path() {
        let found = describe("link[0].forward.channel.ber").unwrap();
        assert!(found[0].summary.contains("probability"), "{found:?}");
        assert!(describe("flow.tcp.ack_policy").unwrap()[0].details.iter().any(|(name, _)| name == "\"immediate\""));
        assert!(describe("path.queue").unwrap()[0].details[0].1.contains("pkt"));
    }

    #[test]
    fn the_last_steps_of_a_path_find_each_field_that_means_something_else() {
        let found = describe("channel.ber").unwrap();
        assert_eq!(found.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["link.channel.ber"]);
        assert!(describe("rate").unwrap().len() > 1);
    }

    #[test]
    fn parameters_tell_their_default() {
        let details = parts().into_iter().flat_map(|part| part.details).collect::<Vec<_>>();
        assert!(!details.is_empty() && details.iter().all(|(_, meaning)| meaning.contains("Default: ")), "{details:?}");
    }

    #[test]
    fn a_differentiator_tells_where_it_works_and_where_it_fails() {
        let told = parts().into_iter().find(|part| part.name == "spike" && part.kind == "differentiator").unwrap();
        let headings: Vec<_> = told.notes.iter().map(|(heading, _)| *heading).collect();
        assert_eq!(headings, ["place", "idea", "formula", "threshold", "fails", "errata"]);
        assert_eq!(told.notes[0].1, "receiver");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = describe("chekcsum-ld").unwrap_err().to_string();
        assert!(error.contains("did you mean `checksum-ld`?"), "{error}");
        let error = describe("link.rat").unwrap_err().to_string();
        assert!(error.contains("did you mean `link.rate`?"), "{error}");
        let error = describe("").unwrap_err().to_string();
        assert!(error.starts_with("nothing has an empty name; allowed: ") && error.len() < 120, "{error}");
    }
}
