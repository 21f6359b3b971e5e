//! Random worlds hold to the invariants.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestCaseError};
use whyloss_testkit::ring::Strip;
use whyloss_testkit::worlds::{HostPlan, PathPlan, ReadPlan, World};
use whyloss_transport::scheme::SCHEMES;
use whyloss_transport::{congestion, differentiation, reaction, receiver, tcp, timeout};

/// The names of a table, so that new algorithms join the worlds by themselves.
macro_rules! names {
    ($table:expr) => {
        $table.iter().map(|row| row.name.to_owned()).collect::<Vec<_>>()
    };
}

fn profile() -> impl Strategy<Value = String> {
    select(tcp::PROFILES.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>())
}

/// Settings of a host: a profile, a scheme or free parts, and some switches thrown the other way.
fn settings() -> impl Strategy<Value = Vec<(String, String)>> {
    const SWITCHES: &[&str] = &[
        "window_scaling",
        "timestamps",
        "sack",
        "dsack",
        "limited_transmit",
        "prr",
        "rack",
        "tlp",
        "ecn",
        "undo",
        "window_validation",
        "slow_start_after_idle",
        "nagle",
        "min_rto_on_variance",
    ];
    let switches = subsequence(SWITCHES, 0..=SWITCHES.len()).prop_flat_map(|keys| {
        proptest::collection::vec(any::<bool>(), keys.len()).prop_map(move |values| {
            keys.iter().zip(values).map(|(key, value)| ((*key).to_owned(), value.to_string())).collect::<Vec<_>>()
        })
    });
    let parts = prop_oneof![
        select(names!(SCHEMES)).prop_map(|scheme| vec![("scheme", scheme)]),
        (
            select(names!(congestion::TABLE)),
            prop_oneof![select(names!(differentiation::TABLE)), select(names!(differentiation::AT_RECEIVER))],
            select(names!(reaction::TABLE)),
            select(names!(timeout::TABLE)),
            select(names!(receiver::TABLE)),
        )
            .prop_map(|(congestion, differentiator, reaction, timeout, receiver)| vec![
                ("congestion", congestion),
                ("differentiator", differentiator),
                ("reaction", reaction),
                ("timeout", timeout),
                ("receiver", receiver),
            ]),
    ];
    let numbers = (
        select(vec!["100", "536", "1000", "1460"]),
        select(vec!["1", "2", "10"]),
        select(vec!["2000", "16384", "65535", "1000000"]),
        select(vec!["3000", "65536", "1000000"]),
        select(vec!["immediate", "delayed:40ms", "delayed:200ms"]),
        select(vec!["tahoe", "reno", "newreno"]),
        select(vec!["lazy", "immediate"]),
        select(vec!["retransmit", "persist"]),
        select(vec!["fine:1ms", "ticks:10ms", "ticks:500ms", "net3:500ms", "freebsd:500ms", "freebsd:10ms"]),
        prop_oneof![Just(0u32), Just(u32::MAX - 3000), any::<u32>()],
    )
        .prop_map(|(mss, window, receive, send, ack, recovery, report, closed, clock, isn)| {
            vec![
                ("mss", mss.to_owned()),
                ("initial_window", window.to_owned()),
                ("receive_buffer", receive.to_owned()),
                ("send_buffer", send.to_owned()),
                ("ack_policy", ack.to_owned()),
                ("recovery", recovery.to_owned()),
                ("report_response", report.to_owned()),
                ("closed_window", closed.to_owned()),
                ("granularity", clock.to_owned()),
                ("initial_seq", isn.to_string()),
                // A world has all the time there is; giving up is for scripts.
                ("max_retransmissions", "none".to_owned()),
                ("max_syn_retransmissions", "none".to_owned()),
            ]
        });
    (profile(), numbers, switches, parts).prop_map(|(profile, numbers, switches, parts)| {
        let owned =
            |words: Vec<(&str, String)>| words.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Vec<_>>();
        [vec![("profile".to_owned(), profile)], owned(numbers), switches, owned(parts)].concat()
    })
}

fn host(most: u64) -> impl Strategy<Value = HostPlan> {
    let reads = prop_oneof![
        4 => Just(ReadPlan::AtOnce),
        1 => (0u64..5000).prop_map(ReadPlan::FromMs),
        1 => (500usize..5000, 5u64..100).prop_map(|(octets, period)| ReadPlan::Paced(octets, period)),
    ];
    let write_size = prop_oneof![3 => Just(usize::MAX), 1 => 1usize..3000];
    let write_pause_ms = prop_oneof![3 => Just(0u64), 1 => 1u64..50];
    (settings(), 0..=most, write_size, write_pause_ms, any::<bool>(), any::<bool>(), reads).prop_map(
        |(settings, sends, write_size, write_pause_ms, produces, closes_after_peer, reads)| HostPlan {
            settings,
            // Small writes with pauses take an hour for a long stream.
            sends: if write_pause_ms > 0 { sends.min(20 * write_size.min(3000) as u64) } else { sends },
            write_size,
            write_pause_ms,
            produces,
            closes_after_peer,
            reads,
        },
    )
}

fn path() -> impl Strategy<Value = PathPlan> {
    let chance = |most: f64| prop_oneof![2 => Just(0.0), 1 => 0.0..most];
    let bottleneck = proptest::option::of((50u64..20_000, 1usize..60));
    let outage = proptest::option::weighted(0.2, (0u64..3000, 1u64..8000));
    let late = (chance(0.2), 1u64..150_000);
    let duplicate = (chance(0.1), 0u64..100_000);
    let faults = (chance(0.02), chance(0.02), chance(0.02), chance(0.5));
    (0u64..150_000, bottleneck, chance(0.04), late, duplicate, faults, outage).prop_map(
        |(delay_us, bottleneck, loss, late, duplicate, (payload_damage, header_damage, mark, forged), outage_ms)| PathPlan {
            delay_us,
            bottleneck,
            loss,
            late,
            duplicate,
            payload_damage,
            header_damage,
            mark,
            forged,
            outage_ms,
        },
    )
}

fn strip() -> impl Strategy<Value = Strip> {
    let some = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(sack, timestamps, window_scale, reports)| Strip { sack, timestamps, window_scale, reports });
    prop_oneof![3 => Just(Strip::default()), 1 => some]
}

fn world(most: u64) -> impl Strategy<Value = World> {
    (any::<u64>(), host(most), host(most), path(), path(), strip()).prop_map(
        |(seed, client, server, forward, backward, stripped)| {
            let mut hosts = [client, server];
            // Somebody has to begin to close.
            hosts[1].closes_after_peer &= !hosts[0].closes_after_peer;
            World { seed, hosts, paths: [forward, backward], stripped, shadows: Vec::new() }
        },
    )
}

/// `WHYLOSS_WORLDS=N` asks for N times as many.
fn config(cases: u32) -> Config {
    let times: u32 = std::env::var("WHYLOSS_WORLDS").map_or(1, |times| times.parse().expect("WHYLOSS_WORLDS is a number"));
    let cases = cases * times;
    Config { cases, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config(400))]

    /// Every octet arrives once, in order and unchanged; both sides come to an end; nobody stalls, spins or breaks a rule of conduct;
    /// the window never falls below a segment; no segment is lost count of.
    #[test]
    fn every_world_ends_well(world in world(150_000)) {
        world.run().map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// The same world runs the same way again, and in the same way when differentiators listen.
    #[test]
    fn a_world_repeats_itself_and_ignores_its_observers(world in world(60_000)) {
        let first = world.run().map_err(TestCaseError::fail)?;
        prop_assert_eq!(first, world.run().map_err(TestCaseError::fail)?);
        let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| part.name);
        let shadows = differentiation::TABLE.iter().map(|part| part.name).chain(at_receiver).map(str::to_owned).collect();
        let watched = World { shadows, ..world };
        prop_assert_eq!(first, watched.run().map_err(TestCaseError::fail)?);
    }
}
