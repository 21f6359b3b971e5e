//! Losses of a world as rows of a table.

use crate::worlds::{self, Family};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use whyloss_sim::{Limits, Truth};
use whyloss_transport::differentiation::learned::features::{Features, COUNT, NAMES};
use whyloss_transport::differentiation::{self, Cause, LossDifferentiator, Verdict};
use whyloss_transport::path::{Ack, Loss, Sent, Trigger};
use whyloss_transport::tcp::Judgement;
use whyloss_transport::{Duration, Instant};

/// Differentiators that need what these worlds do not have, or that know the answer.
const LEFT_OUT: &[&str] = &["none", "oracle", "reported", "hack"];

/// Names of the differentiators that listen beside the features.
pub fn rivals() -> Vec<&'static str> {
    let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| part.name);
    let names = differentiation::TABLE.iter().map(|part| part.name).chain(at_receiver);
    names.filter(|name| !LEFT_OUT.contains(name)).collect()
}

/// Which transmission a description belongs to: offset in the stream, number of the transmission, when it was judged.
type Key = (u64, u32, Instant);

/// Writes down how each loss looked.
#[derive(Debug, Default)]
struct Recorder {
    features: Features,
    /// Position of the first octet of data.
    base: Option<u64>,
    seen: Arc<Mutex<HashMap<Key, [f32; COUNT]>>>,
}

impl LossDifferentiator for Recorder {
    fn on_sent(&mut self, sent: &Sent) {
        self.base.get_or_insert(sent.start);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.features.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        if let (Some(features), Some(base)) = (self.features.observe(loss), self.base) {
            let key = (loss.start - base, loss.transmission, loss.path.now);
            self.seen.lock().expect("nobody panics with it").insert(key, features);
        }
        Verdict { cause: Cause::Unknown, score: 0.0 }
    }
}

/// The names of the columns.
pub fn header() -> String {
    let mut names = vec!["family", "world", "flow", "corruption", "invocation", "by_timeout"];
    names.extend(NAMES);
    let mut header = names.join(",");
    for rival in rivals() {
        write!(header, ",score_{rival},verdict_{rival}").expect("a string takes everything");
    }
    header
}

/// The losses of one world, a line each.
pub fn losses(family: Family, seed: u64, number: u32) -> String {
    let mut seen = Vec::new();
    let world = worlds::build(family, seed, number, &rivals(), |parts| {
        let recorder = Recorder::default();
        seen.push(Arc::clone(&recorder.seen));
        parts.differentiators.shadows.push(("features".to_owned(), Box::new(recorder)));
    });
    let mut simulation = world.builder.build().expect("worlds are well formed");
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(world.seconds)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).expect("worlds run");
    let records = simulation.into_records();
    let names = rivals();
    let mut text = String::new();
    let observed: Vec<_> = records.flows.iter().enumerate().filter(|(_, flow)| !flow.shadows.is_empty()).collect();
    for ((flow, record), seen) in observed.into_iter().zip(seen) {
        let seen = seen.lock().expect("nobody panics with it");
        let places: Vec<_> = names.iter().map(|name| record.shadows.iter().position(|shadow| shadow == name)).collect();
        for loss in records.losses.iter().filter(|loss| loss.flow == flow) {
            // Nothing was lost, or it is not known yet: there is nothing to learn.
            let Truth::Lost(cause) = loss.truth else { continue };
            let Some(features) = seen.get(&(loss.record.offset, loss.record.transmission, loss.record.at)) else { continue };
            let timeout = loss.record.trigger == Trigger::Timeout;
            let invocation = loss.record.judgement != Judgement::Covered;
            write!(
                text,
                "{},{number},{flow},{},{},{}",
                family.name(),
                u8::from(!cause.is_congestion()),
                u8::from(invocation),
                u8::from(timeout)
            )
            .expect("a string takes everything");
            for value in features {
                write!(text, ",{value}").expect("a string takes everything");
            }
            for place in &places {
                let verdict = place.map(|place| loss.record.shadows[place]);
                let score = verdict.map_or(0.0, |verdict| verdict.score);
                let corruption = verdict.is_some_and(|verdict| verdict.cause == Cause::Corruption);
                write!(text, ",{score},{}", u8::from(corruption)).expect("a string takes everything");
            }
            text.push('\n');
        }
    }
    text
}
