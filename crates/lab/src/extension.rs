//! What scenarios can name beside our own parts: what a program adds, and what goes wrong in it.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use whyloss_transport::scheme::{Catalogue, CatalogueError, Row, Selection};

/// What names mean, and what the results of those that are not ours depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub catalogue: Catalogue,
    own: Vec<Own>,
}

/// A row that a program has added.
#[derive(Clone, Debug)]
struct Own {
    row: Row,
    digest: String,
}

static KNOWN: LazyLock<RwLock<Arc<Known>>> = LazyLock::new(RwLock::default);

/// What is known at this moment.
pub(crate) fn known() -> Arc<Known> {
    // It is replaced whole, so that a panic cannot leave it half done.
    Arc::clone(&KNOWN.read().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a part or a scheme to what scenarios of this process can name, from now on. Scenarios that exist already keep their meaning.
///
/// Stored results are found again only where `digest` is the same: it has to change whenever the part decides otherwise. The version of its crate
/// will do, or a digest of its text.
///
/// A row that was added before under the same name in the same role is replaced.
///
/// # Errors
/// If the name is none, or is one of ours.
pub fn extend(row: impl Into<Row>, digest: &str) -> Result<(), CatalogueError> {
    let row = row.into();
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let mut own = known.own.clone();
    let added = Own { row, digest: digest.to_owned() };
    match own.iter_mut().find(|own| (own.row.role(), own.row.name()) == (row.role(), row.name())) {
        Some(old) => *old = added,
        None => own.push(added),
    }
    let mut catalogue = Catalogue::default();
    own.iter().try_for_each(|own| catalogue.add(own.row))?;
    *known = Arc::new(Known { catalogue, own });
    Ok(())
}

impl Known {
    /// What the parts of `selection` that are not ours depend on, as text; nothing if all are ours.
    pub fn digest(&self, selection: &Selection) -> String {
        let scheme = selection.scheme.as_deref().and_then(|name| self.catalogue.scheme(name));
        let mut names: Vec<&str> = selection.names().collect();
        if let Some(scheme) = scheme {
            names.extend(scheme.parts());
        }
        let own = self.own.iter().filter(|own| names.contains(&own.row.name()));
        own.flat_map(|Own { row, digest }| ["\n", row.role(), " ", row.name(), " ", digest]).collect()
    }
}

/// What went wrong in a part that is not ours.
#[derive(Debug)]
pub struct PartFailure {
    /// Name of the part.
    pub part: String,
    /// What it was asked when it failed, such as `on_ack`.
    pub method: String,
    /// The error that it raised.
    pub source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for PartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the part `{}` failed: {}", self.method, self.part, self.source)
    }
}

impl Error for PartFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

thread_local! {
    /// The first failure of the run that this thread is at.
    static FAILURE: RefCell<Option<PartFailure>> = const { RefCell::new(None) };
}

/// Tells that a part cannot go on, from within one of its methods: the engine asks nothing that could be answered with an error. The run on this
/// thread ends within a few thousand events and gives the first failure. Until then the part answers what it likes.
pub fn fail(failure: PartFailure) {
    FAILURE.with_borrow_mut(|first| {
        first.get_or_insert(failure);
    });
}

/// Whether a part of the run on this thread has failed.
pub fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// Takes the failure of the run on this thread.
pub(crate) fn take_failure() -> Option<PartFailure> {
    FAILURE.take()
}
