//! Parts whose methods are Python.
//!
//! The engine asks questions that have no place for an error. An exception is kept with the run that it happened in, which ends soon and raises it;
//! until then the part answers what changes nothing.

use crate::error::{InputError, Raised};
use crate::views::{
    octets, Ack, AfterTimeout, Assessment, Loss, PathInfo, Response, Sent, Timeout, TimeoutResponse, Verdict, Window,
};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::PyClass;
use std::fmt;
use whyloss_lab::{extend, fail, has_failed, PartFailure};
use whyloss_transport::congestion::{self, CongestionControl};
use whyloss_transport::differentiation::{self, LossDifferentiator};
use whyloss_transport::kit::{Arguments, Kind, Parameter, Part, Value};
use whyloss_transport::path;
use whyloss_transport::reaction::{self, Reaction};
use whyloss_transport::timeout::{self, TimeoutPolicy, TimeoutWindow};

/// What a parameter may be, as Python says it.
#[derive(FromPyObject)]
pub enum Given {
    /// Default, smallest, largest.
    Number((f64, f64, f64)),
    /// The first is the default.
    Choice(Vec<String>),
    /// Whether it is set if nothing is said.
    Flag(bool),
}

/// A class of parts: how its objects are made, and which methods it has.
struct Class {
    name: &'static str,
    /// The file with its text, as exceptions call it.
    file: String,
    make: Py<PyAny>,
    methods: Vec<String>,
}

impl Class {
    fn has(&self, method: &str) -> bool {
        self.methods.iter().any(|own| own == method)
    }

    /// Does `job` unless the run has failed already; an exception fails it.
    fn attempt<T>(&self, method: &str, job: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if has_failed() {
            return None;
        }
        Python::attach(|py| {
            job(py)
                .map_err(|error| {
                    let source = Box::new(Raised::new(py, error, &self.file));
                    fail(PartFailure { part: self.name.to_owned(), method: method.to_owned(), source });
                })
                .ok()
        })
    }

    fn make(&'static self, arguments: &Arguments) -> Object {
        let object = self.attempt("__init__", |py| {
            let values = PyDict::new(py);
            for (name, value) in arguments.iter() {
                match value {
                    Value::Number(number) => values.set_item(name, number)?,
                    Value::Flag(flag) => values.set_item(name, flag)?,
                    Value::Word(word) => values.set_item(name, word)?,
                }
            }
            Ok(self.make.bind(py).call((), Some(&values))?.unbind())
        });
        Object { class: self, object }
    }
}

/// An object of a class.
struct Object {
    class: &'static Class,
    /// None if it could not be made: the run has failed.
    object: Option<Py<PyAny>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.class.name).finish()
    }
}

impl Object {
    fn ask<T>(&self, method: &str, question: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        self.class.attempt(method, |py| question(py, object.bind(py)))
    }

    /// Tells of an event, if the class has a method for it.
    fn tell<A: for<'py> PyCallArgs<'py>>(&self, method: &str, event: impl FnOnce() -> A) {
        if self.class.has(method) {
            self.ask(method, |_, object| object.call_method1(method, event()).and_then(|answer| nothing(method, &answer)));
        }
    }

    /// Asks for an answer of a class of ours, which `allowed` names.
    fn answer<V, A>(&self, method: &str, allowed: &str, question: impl FnOnce() -> A) -> Option<V>
    where
        V: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Clone + Sync,
        A: for<'py> PyCallArgs<'py>,
    {
        self.ask(method, |_, object| {
            let answer = object.call_method1(method, question())?;
            answer.cast::<V>().map(|known| known.get().clone()).map_err(|_| wrong(method, &answer, allowed))
        })
    }

    /// The same as [`tell`](Self::tell) where the window may be changed.
    fn move_window<E: for<'py> IntoPyObject<'py>>(
        &self,
        method: &str,
        window: &mut congestion::Window,
        event: impl FnOnce() -> E,
    ) {
        if !self.class.has(method) {
            return;
        }
        let moved = self.ask(method, |py, object| {
            let view = Bound::new(py, Window { engine: window.clone(), locked: false })?;
            let answer = object.call_method1(method, (&view, event()))?;
            nothing(method, &answer)?;
            let mut view = view.borrow_mut();
            // What the part keeps of it moves nothing any more.
            view.locked = true;
            Ok(view.engine.clone())
        });
        if let Some(moved) = moved {
            *window = moved;
        }
    }

    /// Asks for a threshold in octets.
    fn threshold(&self, method: &str, window: &congestion::Window, path: &path::Path) -> u64 {
        let asked = self.ask(method, |_, object| {
            let view = Window { engine: window.clone(), locked: true };
            let answer = object.call_method1(method, (view, PathInfo(path.clone())))?;
            octets(&answer).map_err(|_| wrong(method, &answer, "octets, a number from 0 to 1e15"))
        });
        asked.map_or_else(|| window.cwnd(), |octets| octets as u64)
    }
}

fn wrong(method: &str, answer: &Bound<'_, PyAny>, allowed: &str) -> PyErr {
    PyTypeError::new_err(format!("{method} returned {answer:?}; allowed: {allowed}"))
}

fn nothing(method: &str, answer: &Bound<'_, PyAny>) -> PyResult<()> {
    if answer.is_none() {
        Ok(())
    } else {
        Err(wrong(method, answer, "None"))
    }
}

impl CongestionControl for Object {
    fn on_established(&mut self, window: &mut congestion::Window, path: &path::Path) {
        self.move_window("on_established", window, || PathInfo(path.clone()));
    }

    fn on_sent(&mut self, sent: &path::Sent) {
        self.tell("on_sent", || (Sent::from(sent),));
    }

    fn on_ack(&mut self, window: &mut congestion::Window, ack: &path::Ack) {
        self.move_window("on_ack", window, || Ack::from(ack));
    }

    fn save(&mut self) {
        self.tell("save", || ());
    }

    fn threshold(&mut self, window: &congestion::Window, path: &path::Path) -> u64 {
        Object::threshold(self, "threshold", window, path)
    }

    fn timeout_threshold(&mut self, window: &congestion::Window, path: &path::Path) -> u64 {
        let own = self.class.has("timeout_threshold");
        Object::threshold(self, if own { "timeout_threshold" } else { "threshold" }, window, path)
    }

    fn on_timeout(&mut self, window: &mut congestion::Window, path: &path::Path) {
        self.move_window("on_timeout", window, || PathInfo(path.clone()));
    }

    fn on_undo(&mut self, window: &mut congestion::Window, path: &path::Path) {
        self.move_window("on_undo", window, || PathInfo(path.clone()));
    }
}

impl LossDifferentiator for Object {
    fn on_sent(&mut self, sent: &path::Sent) {
        self.tell("on_sent", || (Sent::from(sent),));
    }

    fn on_ack(&mut self, ack: &path::Ack) {
        self.tell("on_ack", || (Ack::from(ack),));
    }

    fn judge(&mut self, loss: &path::Loss) -> differentiation::Verdict {
        self.answer("judge", "a Verdict", || (Loss::from(loss),))
            .map_or(differentiation::Verdict::UNKNOWN, |Verdict(verdict)| verdict)
    }
}

impl Reaction for Object {
    fn on_ack(&mut self, ack: &path::Ack) {
        self.tell("on_ack", || (Ack::from(ack),));
    }

    fn respond(&mut self, verdict: &differentiation::Verdict, loss: &path::Loss) -> reaction::Response {
        self.answer("respond", "a Response", || (Verdict(*verdict), Loss::from(loss)))
            .map_or(reaction::Response::Reduce, |Response(response)| response)
    }
}

impl TimeoutPolicy for Object {
    fn on_ack(&mut self, ack: &path::Ack) {
        self.tell("on_ack", || (Ack::from(ack),));
    }

    fn on_timeout(&mut self, timeout: &timeout::Timeout) -> timeout::TimeoutResponse {
        self.answer("on_timeout", "a TimeoutResponse", || (Timeout::from(timeout),)).map_or(
            timeout::TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: false },
            |TimeoutResponse(response)| response,
        )
    }

    fn assess(&mut self, after: &timeout::AfterTimeout) -> timeout::Assessment {
        self.answer("assess", "an Assessment", || (AfterTimeout::from(after),))
            .map_or(timeout::Assessment::Genuine, |Assessment(assessment)| assessment)
    }

    fn on_undone(&mut self) {
        self.tell("on_undone", || ());
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Adds a part: its role, its names, its parameters with what they mean and may be, what makes an object of keyword arguments, the methods that it
/// has, the file with its text, and what stored results depend on. It lives as long as the process, as the tables of our own parts do.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn add_part(
    role: &str,
    name: String,
    summary: String,
    reference: String,
    parameters: Vec<(String, String, Given)>,
    make: Py<PyAny>,
    methods: Vec<String>,
    file: String,
    digest: &str,
) -> PyResult<()> {
    let parameter = |(name, summary, given)| {
        let kind = match given {
            Given::Number((default, min, max)) => Kind::Number { default, min, max },
            Given::Flag(default) => Kind::Flag { default },
            Given::Choice(words) => Kind::Choice(Box::leak(words.into_iter().map(leak).collect())),
        };
        Parameter { name: leak(name), summary: leak(summary), kind }
    };
    let parameters: &'static [Parameter] = Box::leak(parameters.into_iter().map(parameter).collect());
    let (name, summary, reference) = (leak(name), leak(summary), leak(reference));
    let class: &'static Class = Box::leak(Box::new(Class { name, file, make, methods }));
    macro_rules! row {
        ($role:ty) => {{
            let make = Box::leak(Box::new(|arguments: &Arguments| Box::new(class.make(arguments)) as Box<$role>));
            let part: Part<$role> = Part { name, summary, reference, parameters, ..Part::shared(make) };
            extend(&*Box::leak(Box::new(part)), digest)
        }};
    }
    let added = match role {
        "congestion" => row!(dyn CongestionControl),
        "differentiator" => row!(dyn LossDifferentiator),
        "reaction" => row!(dyn Reaction),
        "timeout" => row!(dyn TimeoutPolicy),
        _ => return Err(InputError::new_err(format!("no role of parts in Python: {role}"))),
    };
    added.map_err(|error| InputError::new_err(error.to_string()))
}
