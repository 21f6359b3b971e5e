//! Hosts and links that are several of a kind.

use std::path::Path;
use whyloss_lab::Scenario;

/// Names of the links that begin so, with their delays there and back in microseconds.
fn delays(scenario: &Scenario, begin: &str) -> Vec<(String, [u64; 2])> {
    let links = scenario.wires(0).unwrap().links;
    let delays = |ways: &[Vec<whyloss_sim::Stretch>; 2]| {
        ways.each_ref().map(|way| way.iter().map(|stretch| stretch.spec.delay.as_nanos() / 1000).sum())
    };
    links.iter().filter(|link| link.name.starts_with(begin)).map(|link| (link.name.clone(), delays(&link.ways))).collect()
}

#[test]
fn the_parking_lot_stands_as_it_is_drawn() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parking-lot.toml");
    // Wires for real packets know nothing of made-up delays.
    let text = std::fs::read_to_string(path).unwrap().replace("send_overhead = \"0.1 ms\"\n", "");
    let scenario = Scenario::from_toml(&text, "parking-lot").unwrap();
    let wires = scenario.wires(0).unwrap();
    assert_eq!((wires.nodes.len(), wires.links.len()), (44, 43));
    for (number, (name, delay)) in delays(&scenario, "main.").into_iter().enumerate() {
        assert_eq!((name, delay), (format!("main.{number}-R1"), [5000 + 5000 * number as u64; 2]));
    }
    assert_eq!(delays(&scenario, "R4-main-sink.").len(), 10);
    let transfers = scenario.tcp_transfers(0).unwrap();
    for (number, transfer) in transfers.iter().enumerate() {
        let (kind, number) = (["main", "cross"][number / 10], number % 10);
        let expected = [format!("{kind}.{number}"), format!("{kind}-sink.{number}")];
        assert_eq!([transfer.from.clone(), transfer.to.clone()], expected);
    }
}

#[test]
fn round_trips_of_a_dumbbell_lie_in_equal_distances() {
    // RTT_i = 30 + i (400 - 30) / 49 ms: 25 ms there and back are the bottleneck's and the receivers', the rest the senders'.
    let text = "scenario.duration = '1 s'\n[dumbbell]\nbottleneck = { rate = '10 Mbps', delay = '10 ms' }\n\
                senders = { delay = '2.5 ms', delay_to = '187.5 ms' }\nreceivers.delay = '2.5 ms'\n[[flow]]\ncount = 50\n";
    let scenario = Scenario::from_toml(text, "t").unwrap();
    let senders = delays(&scenario, "sender");
    assert_eq!(senders.len(), 50);
    for (number, (_, delay)) in senders.iter().enumerate() {
        let rtt = (delay[0] + delay[1] + 25_000) as f64 / 1000.0;
        let expected = 30.0 + number as f64 * 370.0 / 49.0;
        assert!((rtt - expected).abs() < 0.003, "{number}: {rtt} is not {expected}");
    }
    assert_eq!((senders[0].1, senders[49].1), ([2500; 2], [187_500; 2]));
    assert!(delays(&scenario, "receiver").iter().all(|(_, delay)| *delay == [2500; 2]));
    let falling = text.replace("delay_to = '187.5 ms'", "delay_to = '0 ms'");
    assert_eq!(delays(&Scenario::from_toml(&falling, "t").unwrap(), "sender49")[0].1, [0; 2]);
}

/// Three hosts `a.0` to `a.2` at a router, and `z`.
fn three(more: &str) -> String {
    format!(
        "scenario.duration = '1 s'\n[[host]]\nname = 'a'\ncount = 3\n[[host]]\nname = 'z'\n[[router]]\nname = 'r'\n\
         [[link]]\nbetween = ['a', 'r']\nrate = '1 Mbps'\n[[link]]\nbetween = ['r', 'z']\nrate = '1 Mbps'\n{more}"
    )
}

#[test]
fn each_flow_takes_the_next_host_of_a_kind() {
    let text = three("[[flow]]\nfrom = 'a'\nto = 'z'\ncount = 2\n[[flow]]\nfrom = 'a'\nto = 'z'\ncount = 2\n[[flow]]\nfrom = 'a.1'\nto = 'a'\n");
    let transfers = Scenario::from_toml(&text, "t").unwrap().tcp_transfers(0).unwrap();
    let ends: Vec<_> = transfers.iter().map(|transfer| format!("{}>{}", transfer.from, transfer.to)).collect();
    assert_eq!(ends, ["a.0>z", "a.1>z", "a.2>z", "a.0>z", "a.1>a.0"]);
}

#[test]
fn two_kinds_are_joined_in_pairs() {
    let text = "scenario.duration = '1 s'\n[[host]]\nname = 'a'\ncount = 2\n[[host]]\nname = 'b'\ncount = 2\n\
                [[link]]\nname = 'wire'\nbetween = ['a', 'b']\nrate = '1 Mbps'\ndelay = '1 ms'\ndelay_to = '3 ms'\n\
                [[flow]]\nfrom = 'a'\nto = 'b'\ncount = 2\n";
    let scenario = Scenario::from_toml(text, "t").unwrap();
    let wire = |number: usize, delay| (format!("wire.{number}"), [delay; 2]);
    assert_eq!(delays(&scenario, "wire"), [wire(0, 1000), wire(1, 3000)]);
    assert_eq!(scenario.wires(0).unwrap().links[1].ends, [1, 3]);
}

#[test]
fn mistakes_are_named() {
    let flow = "[[flow]]\nfrom = 'a'\nto = 'z'\n";
    for (text, message) in [
        (three(flow).replace("count = 3", "count = 0"), "host[0].count: found 0; allowed: 1 to 1000000"),
        (three(flow).replace("count = 3", "count = 2000000"), "host[0].count: found 2000000; allowed: 1 to 1000000"),
        (three(flow).replace("name = 'z'", "name = 'a.1'"), "host[1].name: two nodes have the same name; found \"a.1\""),
        (
            three(flow).replace("name = 'z'", "name = 'z'\ncount = 2").replace("['r', 'z']", "['a', 'z']"),
            "link[1].between: hosts of two kinds are joined in pairs; found 3 and 2; allowed: the same number of both, or one of one of them",
        ),
        (
            three(flow).replace("['r', 'z']", "['r', 'z']\ndelay_to = '5 ms'"),
            "link[1].delay_to: `delay_to` says nothing of a single link; allowed: a link of hosts with a `count`",
        ),
        (
            three(flow).replace("count = 3", "count = 3\nposition = ['1 m', '1 m']"),
            "host[0].position: several hosts cannot stand at one place",
        ),
        (
            three(flow).replace("count = 3", "count = 3\nmove = [{ at = '1 s', link = 'x' }]"),
            "host[0].move: several hosts of a kind do not move",
        ),
        (three(&flow.replace("'z'", "'y'")), "flow[0].to: no such node; found \"y\"; allowed: a.0, a.1, a.2, z"),
    ] {
        let error = Scenario::from_toml(&text, "t").unwrap_err().to_string();
        let (_, told) = error.split_once(": ").unwrap();
        assert_eq!(told, message);
    }
}
