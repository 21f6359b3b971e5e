//! The tables hold together.

use super::{Arguments, Kind, Notes, Part, Value, SCHEMES};
use crate::verdict::Cause;
use crate::{congestion, differentiation, reaction, receiver, timeout};
use std::collections::{BTreeMap, BTreeSet};

fn check_table<T: ?Sized>(table: &'static [Part<T>]) -> BTreeMap<&'static str, Vec<(&'static str, Kind)>> {
    let mut seen = BTreeMap::new();
    for part in table {
        let parameters: Vec<_> = part.parameters.iter().map(|p| (p.name, p.kind)).collect();
        assert_eq!(parameters.iter().map(|p| p.0).collect::<BTreeSet<_>>().len(), parameters.len(), "{}", part.name);
        assert!(seen.insert(part.name, parameters).is_none(), "{} stands twice", part.name);
        assert!(part.summary.ends_with('.') && !part.reference.is_empty(), "{}", part.name);
        // `build` panics if it asks for a parameter that the row does not declare: try it at the defaults and at every edge.
        let builds = |given: BTreeMap<String, Value>| {
            drop(part.build(&Arguments::check(part, &given).unwrap_or_else(|error| panic!("{error}"))));
        };
        builds(BTreeMap::new());
        for parameter in part.parameters {
            let edges = match parameter.kind {
                Kind::Number { min, max, .. } => vec![Value::Number(min), Value::Number(max)],
                Kind::Flag { .. } => vec![Value::Flag(false), Value::Flag(true)],
                Kind::Choice(words) => words.iter().map(|word| Value::Word((*word).to_owned())).collect(),
            };
            for value in edges {
                builds(BTreeMap::from([(parameter.name.to_owned(), value)]));
            }
        }
    }
    seen
}

#[test]
fn every_row_builds_and_names_are_unique() {
    let congestion = check_table(congestion::TABLE);
    let mut differentiator = check_table(differentiation::TABLE);
    differentiator.extend(check_table(differentiation::AT_RECEIVER));
    let reaction = check_table(reaction::TABLE);
    let timeout = check_table(timeout::TABLE);
    let receiver = check_table(receiver::TABLE);

    assert_eq!(SCHEMES.iter().map(|scheme| scheme.name).collect::<BTreeSet<_>>().len(), SCHEMES.len());
    for scheme in SCHEMES {
        let parts = [
            (scheme.congestion, &congestion),
            (scheme.differentiator, &differentiator),
            (scheme.reaction, &reaction),
            (scheme.timeout, &timeout),
            (scheme.receiver, &receiver),
        ];
        for (name, table) in parts {
            assert!(table.contains_key(name), "{}: there is no {name}", scheme.name);
        }
        for (part, parameter, _) in scheme.parameters {
            let declared = parts.iter().any(|(name, table)| name == part && table[name].iter().any(|(own, _)| own == parameter));
            assert!(declared, "{}: {part} is not its part or has no parameter {parameter}", scheme.name);
        }
        assert!(scheme.summary.ends_with('.') && !scheme.reference.is_empty(), "{}", scheme.name);
    }
}

#[test]
fn growth_by_octets_is_not_growth_by_acknowledgements() {
    let built = |name: &str| {
        let part = congestion::TABLE.iter().find(|part| part.name == name).unwrap();
        format!("{:?}", part.build(&Arguments::check(part, &BTreeMap::new()).unwrap()))
    };
    assert_ne!(built("reno"), built("newreno"));
}

#[test]
fn every_differentiator_has_its_notes() {
    let at_sender = differentiation::TABLE.iter().map(|part| (part.name, part.notes, part.parameters, part.thresholds));
    let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| (part.name, part.notes, part.parameters, part.thresholds));
    let mut names = BTreeSet::new();
    for (name, Notes { idea, formula, threshold, fails, .. }, parameters, thresholds) in at_sender.chain(at_receiver) {
        assert!(names.insert(name), "{name} stands twice");
        assert!(!idea.is_empty() && !formula.is_empty() && !fails.is_empty(), "{name}");
        assert_eq!(threshold.is_empty(), thresholds.is_empty(), "{name}");
        for named in thresholds {
            let declared = parameters.iter().any(|parameter| parameter.name == named.parameter);
            assert!(
                declared && threshold.contains(named.parameter),
                "{name}: {} is not its parameter or not in its notes",
                named.parameter
            );
            assert_ne!(named.larger, Cause::Unknown, "{name}");
        }
    }
    assert!(differentiation::AT_RECEIVER.len() <= 16, "the classifier's number has four bits");
}
