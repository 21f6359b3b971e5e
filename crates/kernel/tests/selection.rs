//! Every way to give a connection `wl_checksum`: by rules, by the application, for either end that opens it, over either family. Each has to
//! send nonces, to take reports and to keep its window on a link that damages.
#![cfg(feature = "bpf")]

mod support;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use support::middlebox::bed;
use support::path::{watch, Link};
use support::traffic::{connect_from, control_of, set_control, Group};
use support::Loaded;
use whyloss_kernel::select::{self, Match};
use whyloss_kernel::stat::{stat, Connection, Counts};
use whyloss_net::testbed::Testbed;
use whyloss_sim::{ChannelSpec, Effect, Errors};

const CONTROL: &str = "s1_checksum";
const TIME: Duration = Duration::from_millis(1200);

/// How the sender's control is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By no rule: the application asks for Reno. What plain TCP has.
    Reno,
    Port,
    Prefix,
    All,
    /// By the application before the connection is opened.
    SocketEarly,
    /// By the application when the connection is established.
    SocketLate,
}

/// Who opens the connection: the sender (active) or the receiver (passive).
#[derive(Clone, Copy, Debug)]
enum Opened {
    Actively,
    Passively,
}

/// One transfer from the first host to the second.
struct Transfer {
    name: String,
    mbps: f64,
    counts: Counts,
}

/// Opens a connection and gives the sender's end first.
fn open(bed: &Testbed, way: Way, opened: Opened, v6: bool, port: u16) -> (TcpStream, TcpStream) {
    let (near, far) = (bed.namespace(0), bed.namespace(1));
    let early = match way {
        Way::Reno => Some("reno"),
        Way::SocketEarly => Some(CONTROL),
        _ => None,
    };
    let (sender, receiver) = match opened {
        Opened::Actively => {
            let to = SocketAddr::new(bed.plan().address(1, v6), port);
            let listener = far.run(|| TcpListener::bind(to)).expect("a port");
            let sender = early.map_or_else(
                || near.run(|| TcpStream::connect(to)).expect("connects"),
                |control| connect_from(near, to, control),
            );
            (sender, listener.accept().expect("accepts").0)
        }
        Opened::Passively => {
            let to = SocketAddr::new(bed.plan().address(0, v6), port);
            let listener = near.run(|| TcpListener::bind(to)).expect("a port");
            if let Some(control) = early {
                set_control(&listener, control).expect("is loaded");
            }
            let receiver = far.run(|| TcpStream::connect(to)).expect("connects");
            (listener.accept().expect("accepts").0, receiver)
        }
    };
    if way == Way::SocketLate {
        set_control(&sender, CONTROL).expect("is loaded");
    }
    (sender, receiver)
}

/// Transfers of all four kinds at once, under what `way` chooses.
fn transfers(loaded: &Loaded, bed: &Testbed, way: Way, port: u16) -> Vec<Transfer> {
    let kinds = [Opened::Actively, Opened::Passively].into_iter().flat_map(|opened| [(opened, false), (opened, true)]);
    thread::scope(|scope| {
        let threads: Vec<_> = kinds
            .map(|(opened, v6)| {
                scope.spawn(move || {
                    let ends = open(bed, way, opened, v6, port);
                    let name = format!("{way:?}, {opened:?} opened, {}", if v6 { "IPv6" } else { "IPv4" });
                    let expected = if way == Way::Reno { "reno" } else { CONTROL };
                    assert_eq!(control_of(&ends.0), expected, "{name}");
                    let run = watch(&ends, TIME, (0, 0));
                    let ends = [&ends.0, &ends.1].map(|end| end.local_addr().expect("an address"));
                    let own = |connection: &Connection| [connection.local, connection.remote] == ends;
                    let found = stat(&loaded.place).expect("counts").connections.into_iter().find(own);
                    let counts = found.map(|connection| connection.counts).unwrap_or_default();
                    Transfer { name, mbps: run.mbps(), counts }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a transfer")).collect()
    })
}

#[test]
fn every_way_of_selection_differentiates() {
    let Some(loaded) = Loaded::new("s1_", &["wl_checksum"]) else { return };
    let group = Group::enter("s1_");
    let channel = ChannelSpec { errors: Errors::Packets { probability: 0.05 }, effect: Effect::Damage };
    let bed = bed(&Link { rate_bps: 60_000_000, queue_packets: 300, channel, ..Link::default() });
    let nonces = || stat(&loaded.place).expect("counts").reports["nonces"];
    let prefixes = [false, true].map(|v6| bed.plan().address(1, v6).to_string());
    // The mean goodput of a way, or what is wrong with it.
    let look = |way: Way, port: u16, reno: f64| -> Result<f64, String> {
        let rules: Vec<Match> = match way {
            Way::Port => vec![Match { port: Some(port), prefix: None }],
            Way::Prefix => prefixes.iter().map(|text| Match { port: None, prefix: text.parse().ok() }).collect(),
            Way::All => vec![Match::default()],
            Way::Reno | Way::SocketEarly | Way::SocketLate => Vec::new(),
        };
        for rule in &rules {
            select::add(&loaded.place, "wl_checksum", rule, Some(&group.folder)).expect("a rule");
        }
        let before = nonces();
        let done = transfers(&loaded, &bed, way, port);
        let sent = nonces() - before;
        for rule in &rules {
            select::take_back(&loaded.place, rule, Some(&group.folder)).expect("is taken back");
        }
        let mean = done.iter().map(|transfer| transfer.mbps).sum::<f64>() / done.len() as f64;
        println!("{way:?}: {mean:.2} Mbit/s, {sent} nonces");
        if way == Way::Reno {
            assert_eq!(sent, 0, "Reno sends none");
            return Ok(mean);
        }
        for Transfer { name, mbps, counts } in &done {
            println!("    {name}: {mbps:.2} Mbit/s, {counts:?}");
            if counts["heard"] <= 10 || 2 * counts["kept"] <= counts["losses"] || *mbps <= 1.25 * reno {
                return Err(format!("{name}: {mbps} Mbit/s, Reno {reno}, {counts:?}"));
            }
        }
        // Several segments can leave as one GSO packet with one nonce.
        if mean <= 2.0 * reno || sent <= 400 {
            return Err(format!("{way:?}: {mean} Mbit/s, Reno {reno}, {sent} nonces"));
        }
        Ok(mean)
    };
    let mut reno = 0.0;
    for (port, way) in (5901..).zip([Way::Reno, Way::Port, Way::Prefix, Way::All, Way::SocketEarly, Way::SocketLate]) {
        // While the machine stalls, reports are late: one of three times has to go without.
        let mut outcomes = (0..3).map(|attempt| look(way, port + 10 * attempt, reno));
        let mean = outcomes.find_map(|outcome| outcome.map_err(|flaw| println!("{flaw}")).ok());
        let mean = mean.unwrap_or_else(|| panic!("{way:?}: three times in a row"));
        if way == Way::Reno {
            reno = mean;
        }
    }
}
