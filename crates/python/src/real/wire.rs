//! Real packets for Python: files over the engine's TCP.

use crate::convert::to_python;
use crate::error::{InputError, UnavailableError, WhylossError};
use pyo3::prelude::*;
use serde_json::{json, Value};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use whyloss_net::deliver::{self, DeliverError, ServerNews};
use whyloss_net::{Setup, SetupError};
use whyloss_transport::scheme::Selection;

/// A host in user space whose TCP is the engine, behind a TUN device. The device is taken when it serves or fetches, not before.
#[pyclass(frozen, module = "whyloss._native")]
pub struct WireHost(Setup);

#[pymethods]
impl WireHost {
    #[new]
    #[pyo3(signature = (tun, addresses, kernel, mtu, profile, scheme = None, shadows = Vec::new(), ecn = false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        tun: String,
        addresses: Vec<IpAddr>,
        kernel: Vec<IpAddr>,
        mtu: u16,
        profile: String,
        scheme: Option<String>,
        shadows: Vec<String>,
        ecn: bool,
    ) -> PyResult<Self> {
        let selection = Selection { scheme, shadows, ..Selection::default() };
        let setup = Setup { tun, addresses, kernel, mtu, profile, selection, ecn, ..Setup::default() };
        setup.config().map_err(|error| raise(error.into()))?;
        Ok(Self(setup))
    }

    /// Offers the file or folder at `path` until `limit` clients were served or Ctrl-C; gives a report. `watch(kind, value)` is told of
    /// `listening` (URLs) and `finished` (a transfer). Without the interpreter's lock but for `watch`.
    #[pyo3(signature = (path, port, limit, watch))]
    fn serve<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        port: u16,
        limit: Option<u64>,
        watch: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut raised = None;
        let report = py.detach(|| {
            deliver::serve(&self.0, &path, port, limit, |news| {
                let (kind, value) = match news {
                    ServerNews::Listening(urls) => ("listening", json!(urls)),
                    ServerNews::Finished(transfer) => ("finished", json!(transfer)),
                    ServerNews::Tick => ("", Value::Null),
                };
                tell(&mut raised, |py| if kind.is_empty() { Ok(()) } else { call(py, &watch, (kind, to_python(py, &value)?)) })
            })
        });
        match (report, raised) {
            // Ctrl-C is how a server ends.
            (Ok(report), Some(error)) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => {
                to_python(py, &report)
            }
            (_, Some(error)) => Err(error),
            (Ok(report), None) => to_python(py, &report),
            (Err(error), None) => Err(raise(error)),
        }
    }

    /// Fetches `url` to the file `output` and gives a report; `watch(octets, announced)` is told how far it is. Without the interpreter's
    /// lock but for `watch`.
    #[pyo3(signature = (url, output, watch))]
    fn fetch<'py>(&self, py: Python<'py>, url: &str, output: Option<PathBuf>, watch: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut raised = None;
        let report = py.detach(|| {
            deliver::fetch(&self.0, url, output.as_deref(), |outcome| {
                tell(&mut raised, |py| call(py, &watch, (outcome.octets, outcome.announced)))
            })
        });
        match (raised, report) {
            (Some(error), _) => Err(error),
            (None, Ok(report)) => to_python(py, &report),
            (None, Err(error)) => Err(raise(error)),
        }
    }
}

fn call<'py, A: pyo3::call::PyCallArgs<'py>>(py: Python<'py>, watch: &'py Py<PyAny>, arguments: A) -> PyResult<()> {
    watch.bind(py).call1(arguments).map(|_| ())
}

/// Lets Python speak: pending signals, then `say`. An exception is kept, and ends the work.
fn tell(raised: &mut Option<PyErr>, say: impl FnOnce(Python<'_>) -> PyResult<()>) -> ControlFlow<()> {
    match Python::attach(|py| py.check_signals().and_then(|()| say(py))) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            raised.get_or_insert(error);
            ControlFlow::Break(())
        }
    }
}

/// The exception that says what `error` says.
fn raise(error: DeliverError) -> PyErr {
    match error {
        DeliverError::Setup(SetupError::Unavailable(text)) => UnavailableError::new_err(text),
        DeliverError::Setup(SetupError::Choice(text)) => InputError::new_err(text),
        DeliverError::Stack(_) | DeliverError::Fetch(whyloss_net::http::client::FetchError::Url { .. }) => {
            InputError::new_err(error.to_string())
        }
        error => WhylossError::new_err(error.to_string()),
    }
}
