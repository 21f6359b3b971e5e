//! A part of another crate: the example of CONTRIBUTING.md, compiled, added to the catalogue and tried.

mod scalable;

// What the file finds above itself in this crate, as it would in `congestion`.
use whyloss_transport::congestion::{CongestionControl, Window};
use whyloss_transport::{kit, path, settings};

use kit::Value;
use path::{Ack, Path};
use std::collections::BTreeMap;
use whyloss_transport::scheme::{Catalogue, CatalogueError, Scheme, Selection, SelectionError};
use whyloss_transport::segment::Options;
use whyloss_transport::Config;

static SCHEME: Scheme =
    Scheme { name: "scalable", summary: "Scalable TCP.", reference: "Kelly 2003", congestion: "scalable", ..Scheme::PLAIN };

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::builtin().clone();
    catalogue.add(&scalable::PART).unwrap();
    catalogue.add(&SCHEME).unwrap();
    catalogue
}

fn built(parameters: &[(&str, Value)]) -> Result<Box<dyn CongestionControl>, SelectionError> {
    let given = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let selection = Selection { parameters: BTreeMap::from([("scalable".to_owned(), given)]), ..Selection::scheme("scalable") };
    selection.build_from(&catalogue(), &mut Config::modern()).map(|parts| parts.congestion)
}

#[test]
fn contributing_shows_this_file() {
    let page = include_str!("../../../../CONTRIBUTING.md");
    assert!(page.contains(include_str!("scalable.rs")), "the example of CONTRIBUTING.md is not tests/own_part/scalable.rs");
}

#[test]
fn the_crate_of_ones_own_has_the_same_file() {
    let here = include_str!("scalable.rs");
    let there = here
        .replace("super::{", "whyloss_transport::congestion::{")
        .replace("crate::", "whyloss_transport::")
        .replace("pub(super)", "pub");
    assert_eq!(there, include_str!("../../../../examples/own-algorithm/src/scalable.rs"));
}

#[test]
fn it_does_what_kelly_says() {
    let mut control = built(&[]).unwrap();
    let mut window = Window::new(1000, 100_000, 50_000);
    let (options, mut path) = (Options::default(), Path::default());
    path.flight = 100_000;
    let mut ack = Ack::new(&path, &options);
    ack.acked = 1000;
    (0..100).for_each(|_| control.on_ack(&mut window, &ack));
    assert_eq!(window.cwnd(), 101_000, "a hundredth of what was acknowledged");
    assert_eq!(control.threshold(&window, &path), 87_500, "an eighth less");
    assert_eq!(built(&[("decrease", 0.25.into())]).unwrap().threshold(&window, &path), 75_000);
}

#[test]
fn its_parameters_are_checked_like_any_other() {
    let message = |name: &str, value: Value| built(&[(name, value)]).unwrap_err().to_string();
    assert_eq!(message("decrease", 1.0.into()), "parameter `decrease` of scalable is 1; allowed is a number from 0 to 0.9");
    assert_eq!(message("decrase", 0.5.into()), "scalable has no parameter `decrase`; it has increase, decrease");
    let twice = catalogue().add(&scalable::PART).unwrap_err();
    assert!(matches!(twice, CatalogueError::Taken { name: "scalable", .. }));
}
