//! Feature negotiation (RFC 4340, 6).
//!
//! A feature belongs to one endpoint. "Local" are ours, "remote" the other side's.

use super::{Ccid, Config};
use crate::time::{Duration, Instant};
use crate::wire::dccp::{number, Feature, FeatureOption, Opt};
use std::collections::BTreeMap;

/// Time between two repetitions of a request that is not confirmed.
const AGAIN: Duration = Duration::from_millis(200);

/// An option that came behind Mandatory cannot be obeyed: the connection is to be reset (RFC 4340, 5.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

#[derive(Debug)]
pub(super) struct Negotiation {
    server: bool,
    ccid: Ccid,
    reads_marks: bool,
    local: BTreeMap<Feature, u64>,
    remote: BTreeMap<Feature, u64>,
    /// Requests that are not confirmed, and when they left last.
    requests: Vec<(FeatureOption, Option<Instant>)>,
    answers: Vec<FeatureOption>,
}

/// The value of a feature before any negotiation (RFC 4340, 6.4).
const fn initial(feature: Feature) -> u64 {
    match feature {
        Feature::CCID | Feature::ACK_RATIO => 2,
        Feature::SEQUENCE_WINDOW => 100,
        _ => 0,
    }
}

impl Negotiation {
    pub fn new(config: &Config, server: bool) -> Self {
        let mut new = Self {
            server,
            ccid: config.ccid,
            reads_marks: config.ecn,
            local: BTreeMap::new(),
            remote: BTreeMap::new(),
            requests: Vec::new(),
            answers: Vec::new(),
        };
        let window = config.sequence_window.to_be_bytes()[2..].to_vec();
        new.requests.push((FeatureOption::ChangeLocal(Feature::SEQUENCE_WINDOW, window), None));
        if !config.ecn {
            new.requests.push((FeatureOption::ChangeLocal(Feature::ECN_INCAPABLE, vec![1]), None));
        }
        if !server {
            new.requests.push((FeatureOption::ChangeLocal(Feature::CCID, new.wishes(Feature::CCID)), None));
            new.requests.push((FeatureOption::ChangeRemote(Feature::CCID, new.wishes(Feature::CCID)), None));
            new.requests.push((FeatureOption::ChangeRemote(Feature::SEND_ACK_VECTOR, vec![1]), None));
            new.requests.push((FeatureOption::ChangeLocal(Feature::SEND_ACK_VECTOR, vec![1]), None));
        }
        if config.coverage > 0 {
            let wishes = (1..=config.coverage).rev().collect();
            new.requests.push((FeatureOption::ChangeRemote(Feature::MINIMUM_COVERAGE, wishes), None));
        }
        if config.data_checksum {
            new.requests.push((FeatureOption::ChangeRemote(Feature::CHECK_DATA_CHECKSUM, vec![1]), None));
        }
        new
    }

    /// The value of a feature of ours.
    pub fn local(&self, feature: Feature) -> u64 {
        self.local.get(&feature).copied().unwrap_or(initial(feature))
    }

    /// The value of a feature of the other side.
    pub fn remote(&self, feature: Feature) -> u64 {
        self.remote.get(&feature).copied().unwrap_or(initial(feature))
    }

    /// Tells the other side how many data packets to acknowledge at once.
    pub fn set_ack_ratio(&mut self, ratio: u16) {
        let wish = FeatureOption::ChangeLocal(Feature::ACK_RATIO, ratio.to_be_bytes().to_vec());
        let known = |(request, _): &(FeatureOption, _)| request.parts().0 == Feature::ACK_RATIO;
        match self.requests.iter().position(known) {
            Some(at) if self.requests[at].0 == wish => {}
            Some(at) => self.requests[at] = (wish, None),
            None if self.local(Feature::ACK_RATIO) == u64::from(ratio) => {}
            None => self.requests.push((wish, None)),
        }
    }

    /// Whether options should leave soon.
    pub fn is_urgent(&self, now: Instant) -> bool {
        !self.answers.is_empty() || self.requests.iter().any(|(_, sent)| due(*sent, now))
    }

    /// Options for a packet of any type but Data. `all` repeats every request, for packets that open the connection.
    pub fn options(&mut self, now: Instant, all: bool, out: &mut Vec<Opt>) {
        out.extend(self.answers.drain(..).map(Opt::Feature));
        for (request, sent) in self.requests.iter_mut().filter(|(_, sent)| all || due(*sent, now)) {
            *sent = Some(now);
            out.push(Opt::Feature(request.clone()));
        }
    }

    /// Takes in an option of the other side.
    pub fn receive(&mut self, option: &FeatureOption, mandatory: bool) -> Result<(), Refused> {
        let (feature, values) = option.parts();
        let done = match option {
            FeatureOption::ChangeLocal(..) => {
                let value = self.decide(feature, values, true);
                self.answers.push(FeatureOption::ConfirmRemote(feature, self.answer(feature, value)));
                self.remote.extend(value.map(|value| (feature, value)));
                value.is_some()
            }
            FeatureOption::ChangeRemote(..) => {
                let value = self.decide(feature, values, false);
                self.answers.push(FeatureOption::ConfirmLocal(feature, self.answer(feature, value)));
                self.local.extend(value.map(|value| (feature, value)));
                value.is_some()
            }
            FeatureOption::ConfirmLocal(..) => {
                self.complete(|request| matches!(request, FeatureOption::ChangeRemote(own, _) if *own == feature));
                self.remote.extend(confirmed(feature, values).map(|value| (feature, value)));
                true
            }
            FeatureOption::ConfirmRemote(..) => {
                let value = confirmed(feature, values);
                // A confirmation of an older wish does not complete the present one.
                self.complete(|request| match request {
                    FeatureOption::ChangeLocal(own, wish) if *own == feature => {
                        !feature.is_non_negotiable() || value.is_none_or(|value| value == number(wish))
                    }
                    _ => false,
                });
                self.local.extend(value.map(|value| (feature, value)));
                true
            }
        };
        if done || !mandatory {
            Ok(())
        } else {
            Err(Refused)
        }
    }

    fn complete(&mut self, completed: impl Fn(&FeatureOption) -> bool) {
        self.requests.retain(|(request, _)| !completed(request));
    }

    /// The value after the other side's request to change one of its (`theirs`) or of our features; `None` if we do not know the
    /// feature or have no value in common.
    fn decide(&self, feature: Feature, values: &[u8], theirs: bool) -> Option<u64> {
        if feature.is_non_negotiable() {
            let value = number(values);
            let valid = match feature {
                Feature::SEQUENCE_WINDOW => (32..1 << 46).contains(&value),
                _ => values.len() == 2,
            };
            return Some(value).filter(|_| theirs && valid && values.len() <= 6);
        }
        let own = self.wishes(feature);
        // Server-priority (RFC 4340, 6.3.1): the server's first wish that is also one of the client's.
        let (server, client) = if self.server { (&own[..], values) } else { (values, &own[..]) };
        server.iter().find(|wish| client.contains(wish)).map(|wish| u64::from(*wish))
    }

    /// The values of a confirmation.
    fn answer(&self, feature: Feature, value: Option<u64>) -> Vec<u8> {
        match value {
            None if self.wishes(feature).is_empty() => Vec::new(),
            Some(value) if feature == Feature::ACK_RATIO => (value as u16).to_be_bytes().to_vec(),
            Some(value) if feature.is_non_negotiable() => value.to_be_bytes()[2..].to_vec(),
            // The value, then what we would have liked (6.3.1); without agreement the value stays what it is.
            value => {
                let value = value.unwrap_or(initial(feature)) as u8;
                std::iter::once(value).chain(self.wishes(feature)).collect()
            }
        }
    }

    /// What we can live with, the best first. Empty for features that we do not know.
    fn wishes(&self, feature: Feature) -> Vec<u8> {
        match feature {
            Feature::CCID if self.ccid == Ccid::Three => vec![3, 2],
            Feature::CCID => vec![2, 3],
            Feature::ECN_INCAPABLE if !self.reads_marks => vec![1, 0],
            Feature::ECN_INCAPABLE => vec![0, 1],
            Feature::SEND_ACK_VECTOR | Feature::CHECK_DATA_CHECKSUM => vec![1, 0],
            Feature::MINIMUM_COVERAGE => (1..16).chain([0]).collect(),
            _ => Vec::new(),
        }
    }
}

fn due(sent: Option<Instant>, now: Instant) -> bool {
    sent.is_none_or(|sent| now.since(sent) >= AGAIN)
}

/// The value in a confirmation.
fn confirmed(feature: Feature, values: &[u8]) -> Option<u64> {
    let known = matches!(
        feature,
        Feature::CCID
            | Feature::SEQUENCE_WINDOW
            | Feature::ECN_INCAPABLE
            | Feature::ACK_RATIO
            | Feature::SEND_ACK_VECTOR
            | Feature::MINIMUM_COVERAGE
            | Feature::CHECK_DATA_CHECKSUM
    );
    let value = if feature.is_non_negotiable() { number(values) } else { u64::from(*values.first()?) };
    Some(value).filter(|_| known && !values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(client: &mut Negotiation, server: &mut Negotiation) {
        let now = Instant::ZERO;
        for turn in 0..4 {
            let (from, to) = if turn % 2 == 0 { (&mut *client, &mut *server) } else { (&mut *server, &mut *client) };
            let mut options = Vec::new();
            from.options(now, turn < 2, &mut options);
            for option in options {
                let Opt::Feature(option) = option else { panic!("{option:?}") };
                to.receive(&option, false).unwrap();
            }
        }
    }

    #[test]
    fn a_handshake_completes_all_negotiations() {
        let config = Config { coverage: 1, data_checksum: true, ccid: Ccid::Three, ..Config::default() };
        let (mut client, mut server) = (Negotiation::new(&config, false), Negotiation::new(&config, true));
        exchange(&mut client, &mut server);
        for (feature, value) in [
            (Feature::CCID, 3),
            (Feature::SEND_ACK_VECTOR, 1),
            (Feature::MINIMUM_COVERAGE, 1),
            (Feature::CHECK_DATA_CHECKSUM, 1),
            (Feature::SEQUENCE_WINDOW, config.sequence_window),
        ] {
            assert_eq!((client.local(feature), server.remote(feature)), (value, value), "{feature:?}");
            assert_eq!((client.remote(feature), server.local(feature)), (value, value), "{feature:?}");
        }
        assert!(!client.is_urgent(Instant::ZERO) && !server.is_urgent(Instant::ZERO));
    }

    #[test]
    fn the_server_s_wish_decides() {
        let make = |ccid, server| Negotiation::new(&Config { ccid, ..Config::default() }, server);
        let (mut client, mut server) = (make(Ccid::Two, false), make(Ccid::Three, true));
        exchange(&mut client, &mut server);
        assert_eq!((client.local(Feature::CCID), server.remote(Feature::CCID)), (3, 3));
    }

    #[test]
    fn an_ack_ratio_is_repeated_until_the_newest_is_confirmed() {
        let config = Config::default();
        let (mut client, mut server) = (Negotiation::new(&config, false), Negotiation::new(&config, true));
        exchange(&mut client, &mut server);
        client.set_ack_ratio(2);
        assert!(!client.is_urgent(Instant::ZERO), "it is the default");
        client.set_ack_ratio(4);
        let mut options = Vec::new();
        client.options(Instant::ZERO, false, &mut options);
        assert_eq!(options, [Opt::Feature(FeatureOption::ChangeLocal(Feature::ACK_RATIO, vec![0, 4]))]);
        client.set_ack_ratio(3);
        client.receive(&FeatureOption::ConfirmRemote(Feature::ACK_RATIO, vec![0, 4]), false).unwrap();
        assert!(client.is_urgent(Instant::ZERO));
        exchange(&mut client, &mut server);
        assert_eq!((client.local(Feature::ACK_RATIO), server.remote(Feature::ACK_RATIO)), (3, 3));
    }

    #[test]
    fn an_unknown_feature_gets_an_empty_answer_and_breaks_a_mandatory_request() {
        let mut server = Negotiation::new(&Config::default(), true);
        let change = FeatureOption::ChangeRemote(Feature(77), vec![1, 2]);
        server.receive(&change, false).unwrap();
        assert_eq!(server.answers, [FeatureOption::ConfirmLocal(Feature(77), vec![])]);
        assert_eq!(server.receive(&change, true), Err(Refused));
    }
}
