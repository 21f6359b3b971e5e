//! What a capture is: where it was taken, what it missed, its clock, what offload made of it, and what follows for the trust in the rest.

use crate::clock::Clock;
use crate::connections::{Connection, Side};
use crate::place::Place;
use serde::Serialize;
use std::net::IpAddr;

/// What a capture is. Octets are those of data that was acknowledged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Taken {
    /// Where most of the data was captured: `sender`, `receiver`, `middle`, `unknown`, or `mixed`.
    pub place: String,
    /// Somebody said so.
    pub place_was_given: bool,
    /// Octets of data that were captured at their sender, at their receiver, in between, and where nothing tells.
    pub octets_by_place: [u64; Place::ALL.len()],
    /// Directions of connections, likewise.
    pub flows_by_place: [u64; Place::ALL.len()],
    /// The host at which it was taken, if it was taken at one.
    pub host: Option<IpAddr>,
    /// Data came from or to other hosts, too, as if it was captured there.
    #[serde(skip)]
    more_hosts: bool,
    /// Records of packets that were recorded before: they count once.
    pub doubled: u64,
    /// Records that hold several packets.
    pub large_segments: u64,
    /// Packets with data, as far as that can be said.
    pub data_packets: u64,
    /// Segments whose checksum was still to be computed.
    pub uncomputed_checksums: u64,
    /// Segments whose checksum is wrong, as most others of the same host are, too: no damage.
    pub disbelieved_checksums: u64,
    /// Stretches of data that were acknowledged and never captured.
    pub holes: u64,
    /// Octets in them.
    pub unseen_octets: u64,
    /// Times at which a sender had an acknowledgement that was never captured.
    pub unseen_acks: u64,
    /// Its clock.
    pub clock: Clock,
}

/// Of the data so much makes a place that of the capture.
const MOST: f64 = 0.8;

impl Taken {
    /// A connection is over. `given` is the place that somebody said.
    pub fn add_connection(&mut self, connection: &Connection, given: Option<Place>) {
        self.doubled += connection.doubles.taken_out;
        for side in [Side::Client, Side::Server] {
            let signs = &connection.signs[side as usize];
            self.large_segments += signs.large;
            self.data_packets += signs.packets;
            self.uncomputed_checksums += signs.uncomputed;
            self.clock.note_jumps(&connection.paces[side as usize]);
            let half = connection.half(side);
            if half.counts.segments == 0 {
                continue;
            }
            let place = given.unwrap_or_else(|| connection.place(side));
            self.flows_by_place[place as usize] += 1;
            self.octets_by_place[place as usize] += half.acknowledged();
            self.holes += half.counts.holes;
            self.unseen_octets += half.counts.unseen_octets;
            self.unseen_acks += half.counts.unseen_acks;
            let (sender, receiver) = match side {
                Side::Client => (connection.client, connection.server),
                Side::Server => (connection.server, connection.client),
            };
            match place {
                Place::Sender => self.note_host(Some(sender.ip())),
                Place::Receiver => self.note_host(Some(receiver.ip())),
                Place::Middle | Place::Unknown => {}
            }
        }
        self.place_was_given |= given.is_some();
    }

    fn note_host(&mut self, host: Option<IpAddr>) {
        let Some(host) = host else { return };
        match self.host {
            _ if self.more_hosts => {}
            None => self.host = Some(host),
            Some(other) if other == host => {}
            Some(_) => (self.host, self.more_hosts) = (None, true),
        }
    }

    /// Takes over what another part of the connections shows.
    pub fn add(&mut self, other: &Self) {
        for place in 0..Place::ALL.len() {
            self.octets_by_place[place] += other.octets_by_place[place];
            self.flows_by_place[place] += other.flows_by_place[place];
        }
        self.place_was_given |= other.place_was_given;
        self.doubled += other.doubled;
        self.large_segments += other.large_segments;
        self.data_packets += other.data_packets;
        self.uncomputed_checksums += other.uncomputed_checksums;
        self.disbelieved_checksums += other.disbelieved_checksums;
        self.holes += other.holes;
        self.unseen_octets += other.unseen_octets;
        self.unseen_acks += other.unseen_acks;
        self.clock.jumps += other.clock.jumps;
        self.clock.largest_jump_ns = self.clock.largest_jump_ns.max(other.clock.largest_jump_ns);
        if other.more_hosts {
            (self.host, self.more_hosts) = (None, true);
        }
        self.note_host(other.host);
    }

    /// All is there: names the place.
    pub fn conclude(&mut self) {
        let (weights, all) = self.weights();
        let most = Place::ALL.into_iter().find(|place| weights[*place as usize] as f64 >= MOST * all.max(1) as f64);
        let name = if all == 0 { Place::Unknown.name() } else { most.map_or("mixed", Place::name) };
        name.clone_into(&mut self.place);
    }

    /// Data by place, or directions if no data was acknowledged; and their sum.
    fn weights(&self) -> ([u64; Place::ALL.len()], u64) {
        let octets: u64 = self.octets_by_place.iter().sum();
        let weights = if octets > 0 { self.octets_by_place } else { self.flows_by_place };
        (weights, weights.iter().sum())
    }

    /// All of it in words, with what follows. `missed` is what the capture's counters say, `cut` how many records were cut off.
    pub fn paragraph(&self, records: u64, missed: Option<u64>, cut: u64) -> String {
        let parts = [
            self.place_words(),
            self.missed_words(missed),
            self.doubled_words(records),
            self.offload_words(records, cut),
            self.clock_words(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn place_words(&self) -> String {
        let (weights, all) = self.weights();
        if all == 0 {
            return "No data was sent in it, so nothing tells where the capture was taken.".to_owned();
        }
        let share = |place: Place| 100.0 * weights[place as usize] as f64 / all as f64;
        let host = self.host.map_or_else(String::new, |host| format!(", at {host}"));
        let place = Place::ALL.into_iter().find(|place| place.name() == self.place);
        let said = if self.place_was_given { " as you said" } else { "" };
        match place {
            Some(Place::Sender) => format!(
                "The capture was taken at the sender{said}{host} ({:.0} % of the data): every transmission is there and round trips are \
                 those of the sender, so what it repaired, why, and when are sure; what happened on the way shows only in delays and answers.",
                share(Place::Sender)
            ),
            Some(Place::Receiver) => format!(
                "The capture was taken at the receiver{said}{host} ({:.0} % of the data): what was lost never came here and is known by gaps \
                 and repairs; why the sender repaired is inferred from how long it took, and the loss of all that was under way looks like a pause.",
                share(Place::Receiver)
            ),
            Some(Place::Middle) => format!(
                "The capture was taken between sender and receiver{said} ({:.0} % of the data): losses before it are gaps, losses behind it \
                 are repeats of what it shows; round trips are added up from both parts.",
                share(Place::Middle)
            ),
            Some(Place::Unknown) => "Nothing tells where the capture was taken: there are too few round trips, hop limits and checksums; \
                 take what is said of triggers and times with care, or say it with --at."
                .to_owned(),
            None => format!(
                "Not all connections were captured at the same distance{host}: of the data {:.0} % at its sender, {:.0} % at its receiver, \
                 {:.0} % in between; each connection is judged by its own place.",
                share(Place::Sender),
                share(Place::Receiver),
                share(Place::Middle)
            ),
        }
    }

    fn missed_words(&self, missed: Option<u64>) -> String {
        let counters = match missed {
            Some(0) => "Its own counters say that it missed nothing".to_owned(),
            Some(missed) => format!("Its own counters say that it missed {missed} packets"),
            None => "It has no counters of what it missed".to_owned(),
        };
        if self.holes == 0 && self.unseen_acks == 0 {
            return format!("{counters}; all data that was acknowledged is in it.");
        }
        let mut gaps = Vec::new();
        match self.holes {
            0 => {}
            1 => gaps.push(format!("a stretch of data ({} octets) was acknowledged though it never saw it", self.unseen_octets)),
            holes => gaps.push(format!(
                "{holes} stretches of data ({} octets) were acknowledged though it never saw them",
                self.unseen_octets
            )),
        }
        match self.unseen_acks {
            0 => {}
            1 => gaps.push("once a sender had an acknowledgement that is not in it".to_owned()),
            times => gaps.push(format!("{times} times a sender had an acknowledgement that is not in it")),
        }
        format!(
            "{counters}; {}. These are gaps of the capture, no losses, and have the cause `capture`; near them triggers are less sure.",
            gaps.join(", and ")
        )
    }

    fn doubled_words(&self, records: u64) -> String {
        if self.doubled == 0 {
            return String::new();
        }
        format!(
            "{} of its {records} records are second ones of the same packet, as on a bridge and its port, on both sides of a router or of a \
             VLAN; each packet counts once.",
            self.doubled
        )
    }

    fn offload_words(&self, records: u64, cut: u64) -> String {
        let mut words = Vec::new();
        if self.large_segments > 0 {
            words.push(format!(
                "{} records hold several packets that the network card parts or joins (offload): numbers of packets are estimates ({} with \
                 data), and what happened inside one is not seen.",
                self.large_segments, self.data_packets
            ));
        }
        if self.uncomputed_checksums > 0 {
            words.push("Checksums of packets that leave are not computed yet: damage shows only in what arrives.".to_owned());
        }
        if self.disbelieved_checksums > 0 {
            words.push(format!(
                "{} wrong checksums are not taken for damage, as most others of the same host are wrong or not computed, too.",
                self.disbelieved_checksums
            ));
        }
        if cut > 0 {
            let all = if cut >= records { "All" } else { "Some" };
            words.push(format!(
                "{all} packets are cut, so their checksums cannot be checked: damaged copies are not recognised by them."
            ));
        }
        words.join(" ")
    }

    fn clock_words(&self) -> String {
        let clock = &self.clock;
        let mut words = Vec::new();
        // A finer clock than this tells nothing more.
        if clock.resolution_ns > 10_000 {
            words.push(format!("Its clock has steps of {}: shorter times mean nothing.", time(clock.resolution_ns)));
        }
        if clock.backward > 0 {
            words.push(format!(
                "{} records are earlier than the one before them, by {} at most: they were brought into the order of time{}.",
                clock.backward,
                time(clock.most_backward_ns),
                match clock.late {
                    0 => String::new(),
                    late => format!(
                        ", but for {late} that stand more than a second or a thousand packets too far behind, near which reordering may be that of \
                         the file"
                    ),
                }
            ));
        }
        if clock.jumps > 0 {
            words.push(format!(
                "Its clock jumped forward by up to {} while the hosts' clocks did not: stalls of that length are none.",
                time(clock.largest_jump_ns)
            ));
        }
        words.join(" ")
    }
}

/// A time in the unit that fits.
fn time(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.3} µs", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{seconds:.3} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paragraph_says_what_follows() {
        let mut taken = Taken { octets_by_place: [980, 0, 20, 0], flows_by_place: [1, 0, 1, 0], ..Taken::default() };
        taken.host = "10.0.0.1".parse().ok();
        taken.conclude();
        let words = taken.paragraph(100, Some(0), 0);
        assert!(words.starts_with("The capture was taken at the sender, at 10.0.0.1 (98 % of the data)"), "{words}");
        assert!(words.ends_with("all data that was acknowledged is in it."), "{words}");
        (taken.holes, taken.unseen_octets, taken.doubled, taken.large_segments) = (3, 4344, 50, 2);
        (taken.clock.backward, taken.clock.most_backward_ns, taken.clock.jumps, taken.clock.late) = (4, 1_500, 1, 2);
        let words = taken.paragraph(100, Some(3), 100);
        for part in [
            "missed 3 packets; 3 stretches",
            "50 of its 100 records",
            "All packets are cut",
            "1.500 µs",
            "but for 2 that",
            "jumped forward",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let mut other = Taken { octets_by_place: [0, 980, 0, 0], host: "10.0.0.2".parse().ok(), ..Taken::default() };
        other.add(&taken);
        other.conclude();
        assert_eq!((other.place.as_str(), other.host), ("mixed", None));
    }
}
