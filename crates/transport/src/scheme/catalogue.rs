//! What names may mean.

use super::{Scheme, SCHEMES};
use crate::congestion::{self, CongestionControl};
use crate::differentiation::{self, GapDifferentiator, LossDifferentiator};
use crate::kit::Part;
use crate::reaction::{self, Reaction};
use crate::receiver::{self, ReceiverAgent};
use crate::timeout::{self, TimeoutPolicy};
use std::sync::LazyLock;

/// Differentiators at the receiver that a loss-cause report can number.
const MOST_AT_RECEIVER: usize = 16;

/// All parts and schemes that a [`Selection`](super::Selection) can name: those of this crate, and what a program adds to them.
///
/// ```
/// use whyloss_transport::kit::Part;
/// use whyloss_transport::reaction::{Reaction, Response};
/// use whyloss_transport::scheme::{Catalogue, Selection};
/// use whyloss_transport::path::Loss;
/// use whyloss_transport::verdict::Verdict;
/// use whyloss_transport::Config;
///
/// /// Never slows down.
/// #[derive(Debug)]
/// struct Stubborn;
///
/// impl Reaction for Stubborn {
///     fn respond(&mut self, _verdict: &Verdict, _loss: &Loss) -> Response {
///         Response::Keep
///     }
/// }
///
/// const STUBBORN: Part<dyn Reaction> = Part {
///     name: "stubborn",
///     summary: "Keeps the window whatever was lost.",
///     reference: "nobody",
///     ..Part::fixed(|_| Box::new(Stubborn))
/// };
///
/// let mut catalogue = Catalogue::builtin().clone();
/// catalogue.add(&STUBBORN)?;
/// let selection = Selection { reaction: Some("stubborn".into()), ..Selection::scheme("reno") };
/// let parts = selection.build_from(&catalogue, &mut Config::modern())?;
/// assert_eq!(format!("{:?}", parts.reaction), "Stubborn");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) congestion: Vec<&'static Part<dyn CongestionControl>>,
    pub(super) at_sender: Vec<&'static Part<dyn LossDifferentiator>>,
    pub(super) at_receiver: Vec<&'static Part<dyn GapDifferentiator>>,
    pub(super) reactions: Vec<&'static Part<dyn Reaction>>,
    pub(super) timeouts: Vec<&'static Part<dyn TimeoutPolicy>>,
    pub(super) receivers: Vec<&'static Part<dyn ReceiverAgent>>,
    pub(super) schemes: Vec<&'static Scheme>,
}

/// Something to be added to a [`Catalogue`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Row {
    /// The row of a congestion control.
    Congestion(&'static Part<dyn CongestionControl>),
    /// A differentiator at the sender.
    AtSender(&'static Part<dyn LossDifferentiator>),
    /// A differentiator at the receiver.
    AtReceiver(&'static Part<dyn GapDifferentiator>),
    /// The row of a reaction.
    Reaction(&'static Part<dyn Reaction>),
    /// The row of a timeout policy.
    Timeout(&'static Part<dyn TimeoutPolicy>),
    /// The row of a receiver agent.
    Receiver(&'static Part<dyn ReceiverAgent>),
    /// The row of a scheme.
    Scheme(&'static Scheme),
}

macro_rules! rows {
    ($($variant:ident: $type:ty),*) => {$(
        impl From<&'static $type> for Row {
            fn from(row: &'static $type) -> Self {
                Self::$variant(row)
            }
        }
    )*};
}

rows!(
    Congestion: Part<dyn CongestionControl>,
    AtSender: Part<dyn LossDifferentiator>,
    AtReceiver: Part<dyn GapDifferentiator>,
    Reaction: Part<dyn Reaction>,
    Timeout: Part<dyn TimeoutPolicy>,
    Receiver: Part<dyn ReceiverAgent>,
    Scheme: Scheme
);

impl Row {
    /// The name by which scenarios choose it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Congestion(part) => part.name,
            Self::AtSender(part) => part.name,
            Self::AtReceiver(part) => part.name,
            Self::Reaction(part) => part.name,
            Self::Timeout(part) => part.name,
            Self::Receiver(part) => part.name,
            Self::Scheme(scheme) => scheme.name,
        }
    }

    /// What it is in messages: "scheme", "congestion control", …
    pub const fn role(&self) -> &'static str {
        match self {
            Self::Congestion(_) => "congestion control",
            Self::AtSender(_) | Self::AtReceiver(_) => "differentiator",
            Self::Reaction(_) => "reaction",
            Self::Timeout(_) => "timeout policy",
            Self::Receiver(_) => "receiver agent",
            Self::Scheme(_) => "scheme",
        }
    }
}

/// Why a row cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The name means something already.
    #[error("there is a {role} `{name}` already")]
    Taken {
        /// The role: "scheme", "congestion control", …
        role: &'static str,
        /// The name that two rows have.
        name: &'static str,
    },
    /// A name that nobody could write.
    #[error("a {role} cannot be called `{name}`; a name is made of small letters, digits and hyphens")]
    Name {
        /// What it is: "scheme", "congestion control", …
        role: &'static str,
        /// The name, which has letters that none may have.
        name: &'static str,
    },
    /// Reports have no number for another differentiator at the receiver.
    #[error("`{name}` would be one differentiator at the receiver more than the {MOST_AT_RECEIVER} that reports can number")]
    Full {
        /// The name of the row that does not fit.
        name: &'static str,
    },
    /// A scheme of parts that do not exist.
    #[error("scheme `{scheme}` has the {role} `{name}`, which there is not; add the part first")]
    Missing {
        /// The scheme's name.
        scheme: &'static str,
        /// What is missing: "congestion control", …
        role: &'static str,
        /// The name by which the scheme calls it.
        name: &'static str,
    },
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::builtin().clone()
    }
}

impl Catalogue {
    /// The parts and schemes of this crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| Catalogue {
            congestion: congestion::TABLE.iter().collect(),
            at_sender: differentiation::TABLE.iter().collect(),
            at_receiver: differentiation::AT_RECEIVER.iter().collect(),
            reactions: reaction::TABLE.iter().collect(),
            timeouts: timeout::TABLE.iter().collect(),
            receivers: receiver::TABLE.iter().collect(),
            schemes: SCHEMES.iter().collect(),
        });
        &BUILTIN
    }

    /// Adds a part or a scheme: a `&'static Part<dyn …>` of any role, or a `&'static Scheme` of parts that are there.
    ///
    /// # Errors
    /// If the name is taken or none, if reports cannot number another differentiator, or if the scheme's parts are not there.
    pub fn add(&mut self, row: impl Into<Row>) -> Result<(), CatalogueError> {
        let row = row.into();
        let (role, name) = (row.role(), row.name());
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-') {
            return Err(CatalogueError::Name { role, name });
        }
        // A differentiator at the receiver is a receiver agent, too.
        let also = if matches!(row, Row::AtReceiver(_)) { "receiver agent" } else { role };
        if let Some(role) = [role, also].into_iter().find(|role| self.names(role).contains(&name)) {
            return Err(CatalogueError::Taken { role, name });
        }
        match row {
            Row::Congestion(part) => self.congestion.push(part),
            Row::AtSender(part) => self.at_sender.push(part),
            Row::AtReceiver(_) if self.at_receiver.len() == MOST_AT_RECEIVER => return Err(CatalogueError::Full { name }),
            Row::AtReceiver(part) => self.at_receiver.push(part),
            Row::Reaction(part) => self.reactions.push(part),
            Row::Timeout(part) => self.timeouts.push(part),
            Row::Receiver(part) => self.receivers.push(part),
            Row::Scheme(scheme) => {
                self.check(scheme)?;
                self.schemes.push(scheme);
            }
        }
        Ok(())
    }

    /// All rows: schemes, then parts by role, each role in the order in which its rows were added.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let schemes = self.schemes.iter().map(|row| Row::Scheme(row));
        let congestion = self.congestion.iter().map(|row| Row::Congestion(row));
        let at_sender = self.at_sender.iter().map(|row| Row::AtSender(row));
        let at_receiver = self.at_receiver.iter().map(|row| Row::AtReceiver(row));
        let reactions = self.reactions.iter().map(|row| Row::Reaction(row));
        let timeouts = self.timeouts.iter().map(|row| Row::Timeout(row));
        let receivers = self.receivers.iter().map(|row| Row::Receiver(row));
        schemes.chain(congestion).chain(at_sender).chain(at_receiver).chain(reactions).chain(timeouts).chain(receivers)
    }

    /// The scheme called `name`.
    pub fn scheme(&self, name: &str) -> Option<&'static Scheme> {
        self.schemes.iter().copied().find(|scheme| scheme.name == name)
    }

    fn check(&self, scheme: &'static Scheme) -> Result<(), CatalogueError> {
        let parts = [
            ("congestion control", scheme.congestion),
            ("differentiator", scheme.differentiator),
            ("reaction", scheme.reaction),
            ("timeout policy", scheme.timeout),
            ("receiver agent", scheme.receiver),
        ];
        match parts.into_iter().find(|(role, name)| !self.names(role).contains(name)) {
            Some((role, name)) => Err(CatalogueError::Missing { scheme: scheme.name, role, name }),
            None => Ok(()),
        }
    }

    /// All names of a role.
    pub(super) fn names(&self, role: &str) -> Vec<&'static str> {
        fn of<T: ?Sized>(rows: &[&'static Part<T>]) -> Vec<&'static str> {
            rows.iter().map(|part| part.name).collect()
        }
        match role {
            "congestion control" => of(&self.congestion),
            "differentiator" => [of(&self.at_sender), of(&self.at_receiver)].concat(),
            "reaction" => of(&self.reactions),
            "timeout policy" => of(&self.timeouts),
            "receiver agent" => [of(&self.receivers), of(&self.at_receiver)].concat(),
            _ => self.schemes.iter().map(|scheme| scheme.name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::None;
    use crate::scheme::{Selection, SelectionError};
    use crate::tcp::Config;

    const OWN: Part<dyn CongestionControl> =
        Part { name: "own", summary: "Ten segments.", reference: "nobody", ..Part::fixed(|_| Box::new(None::new(10))) };
    static OWN_SCHEME: Scheme = Scheme { name: "own", congestion: "own", ..Scheme::PLAIN };

    #[test]
    fn what_is_added_can_be_chosen_and_the_built_in_rows_stay_as_they_are() {
        let mut catalogue = Catalogue::default();
        assert_eq!(
            catalogue.add(&OWN_SCHEME),
            Err(CatalogueError::Missing { scheme: "own", role: "congestion control", name: "own" })
        );
        catalogue.add(&OWN).unwrap();
        catalogue.add(&OWN_SCHEME).unwrap();
        let parts = Selection::scheme("own").build_from(&catalogue, &mut Config::modern()).unwrap();
        assert_eq!(format!("{:?}", parts.congestion), format!("{:?}", None::new(10)));
        let unknown = Selection::scheme("own").build(&mut Config::modern());
        assert!(matches!(unknown, Err(SelectionError::Unknown { role: "scheme", .. })));
        let message = Selection::scheme("owm").build_from(&catalogue, &mut Config::modern()).unwrap_err().to_string();
        assert!(message.starts_with("there is no scheme `owm` (did you mean `own`?)"), "{message}");
    }

    #[test]
    fn names_are_unique_and_can_be_written() {
        const EMPTY: Part<dyn Reaction> =
            Part { name: "", summary: "", reference: "", ..Part::fixed(|_| Box::new(crate::reaction::Keep)) };
        const CAPITAL: Part<dyn Reaction> = Part { name: "Keep", ..EMPTY };
        const BIAZ: Part<dyn ReceiverAgent> =
            Part { name: "biaz", summary: "", reference: "", ..Part::fixed(|_| Box::new(crate::receiver::Plain)) };
        let mut catalogue = Catalogue::default();
        catalogue.add(&OWN).unwrap();
        assert_eq!(catalogue.add(&OWN), Err(CatalogueError::Taken { role: "congestion control", name: "own" }));
        assert_eq!(catalogue.add(&EMPTY), Err(CatalogueError::Name { role: "reaction", name: "" }));
        assert_eq!(catalogue.add(&CAPITAL), Err(CatalogueError::Name { role: "reaction", name: "Keep" }));
        assert_eq!(catalogue.add(&BIAZ), Err(CatalogueError::Taken { role: "receiver agent", name: "biaz" }));
        for row in &catalogue.clone().congestion {
            assert!(catalogue.add(*row).is_err(), "{}", row.name);
        }
    }

    #[test]
    fn a_part_can_be_made_by_what_is_known_only_at_run_time() {
        for segments in [3, 7] {
            let build =
                Box::leak(Box::new(move |_: &crate::kit::Arguments| Box::new(None::new(segments)) as Box<dyn CongestionControl>));
            let part = Box::leak(Box::new(Part { name: "own", ..Part::shared(build) }));
            let mut catalogue = Catalogue::default();
            catalogue.add(&*part).unwrap();
            assert!(catalogue.rows().any(|row| (row.role(), row.name()) == ("congestion control", "own")));
            let own = Selection { congestion: Some("own".into()), ..Selection::default() };
            let parts = own.build_from(&catalogue, &mut Config::modern()).unwrap();
            assert_eq!(format!("{:?}", parts.congestion), format!("{:?}", None::new(segments)));
        }
    }

    #[test]
    fn reports_can_number_sixteen_differentiators() {
        let mut catalogue = Catalogue::default();
        let mut results = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            let part: &'static Part<dyn GapDifferentiator> =
                Box::leak(Box::new(Part { name, ..differentiation::AT_RECEIVER[0] }));
            results.push(catalogue.add(part).is_ok());
        }
        assert_eq!(results.iter().filter(|added| **added).count(), MOST_AT_RECEIVER - differentiation::AT_RECEIVER.len());
        assert_eq!(results.last(), Some(&false));
    }
}
