//! Schemes by name, and the choice of a user.
//!
//! Every algorithm has one row in the table of its role ([`congestion::TABLE`](crate::congestion::TABLE) and its sisters): its name,
//! what it is, where it comes from, its parameters, and how to build it. A [`Scheme`] is a row that puts parts together under the
//! name that the literature gives them. A [`Catalogue`] has them all, and what a program adds of its own. [`Selection`] is a user's choice, checked and
//! built into [`Parts`].

mod catalogue;
mod schemes;
mod selection;
#[cfg(test)]
mod tests;

pub use catalogue::{Catalogue, CatalogueError, Row};
pub use schemes::{Preset, Scheme, SCHEMES};
pub use selection::{Selection, SelectionError};

pub use crate::kit::{ArgumentError, Arguments, Kind, Notes, Parameter, Part, Value};
pub use crate::tcp::Parts;
