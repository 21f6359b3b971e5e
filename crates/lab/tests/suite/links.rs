//! What a scenario says about links is what simulator and emulator get, by the same names.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use whyloss_lab::arrow_array::Array as _;
use whyloss_lab::{run, Control, RunOptions, Scenario, Tables};
use whyloss_sim::{
    AdaptiveRed, Change, ChannelSpec, DelayEstimate, Discipline, Downtime, Errors, FqCoDel, Jitter, JitterLaw, LinkSpec, Outage,
    Pie, Policer, QueueLimit, Red, Reorder, Spell, WhileDown,
};
use whyloss_transport::{BitRate, Duration, Instant};

const FLOW: &str = "[[flow]]\nsize = '1 MB'\n";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn wire(text: &str) -> [LinkSpec; 2] {
    let wires = Scenario::from_toml(text, "t").unwrap().wires(0).unwrap();
    let [there, back] = &wires.links[0].ways;
    // Of a path the shaped link is the last there and the first back.
    [there[1].spec.clone(), back[0].spec.clone()]
}

#[test]
fn all_fields_reach_the_link() {
    let text = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '9 pkt'\novertaking = true\nduplicate = '1 %'\n\
                jitter = { mean = '4 ms', law = 'normal', deviation = '1 ms' }\nreorder = { share = 0.25, late = '7 ms' }\n\
                outage = [{ at = '1 s', lasts = '300 ms', every = '2 s', packets = 'held' }, { at = '3 s', lasts = { mean = '1 ms', law = 'exponential' }, gap = { mean = '2 s', law = 'pareto', shape = 2.5 } }]\n\
                change = [{ at = '2 s', rate = '2 Mbps', queue = '3 kB' }, { at = '4 s', delay = '20 ms', channel.loss = 0.5 }]\n";
    let outage = |at, lasts, every, packets| Outage { every, packets, ..Outage::once(Instant::ZERO + ms(at), ms(lasts)) };
    let (lasts, gap) = (Spell::exponential(ms(1)), Some(Spell::pareto(ms(2000), 2.5)));
    let random = Outage { lasts, gap, ..outage(3000, 1, None, WhileDown::Dropped) };
    let expected = LinkSpec {
        rate: BitRate::from_bps(1_000_000),
        delay: ms(10),
        queue: QueueLimit::Packets(9),
        jitter: Some(Jitter::normal(ms(4), ms(1))),
        overtaking: true,
        reorder: Some(Reorder::late(0.25, ms(7))),
        duplicate: 0.01,
        outage: vec![outage(1000, 300, Some(ms(2000)), WhileDown::Held), random],
        change: vec![
            Change {
                at: Instant::ZERO + ms(2000),
                rate: Some(BitRate::from_bps(2_000_000)),
                queue: Some(QueueLimit::Octets(3000)),
                ..Change::default()
            },
            Change {
                at: Instant::ZERO + ms(4000),
                delay: Some(ms(20)),
                channel: Some(ChannelSpec { errors: Errors::Packets { probability: 0.5 }, ..ChannelSpec::default() }),
                ..Change::default()
            },
        ],
        ..LinkSpec::default()
    };
    let both = wire(&format!("{text}{FLOW}"));
    assert_eq!(both, [expected.clone(), expected.clone()]);
    // A direction says what differs, and can take away what the other has.
    let own = "[path.forward]\njitter = { mean = '1 ms' }\nreorder = { share = 0.5, early = '1 ms' }\novertaking = false\n\
               outage = []\nchange = []\nduplicate = 0\n";
    let [there, back] = wire(&format!("{text}{own}{FLOW}"));
    let different = LinkSpec {
        jitter: Some(Jitter::new(ms(1), JitterLaw::Uniform)),
        reorder: Some(Reorder::early(0.5, ms(1))),
        overtaking: false,
        outage: Vec::new(),
        change: Vec::new(),
        duplicate: 0.0,
        ..expected.clone()
    };
    assert_eq!((there, back), (different, expected));
}

#[test]
fn disciplines_reach_the_link() {
    let red = Red { min: 7.0, bytes: true, queue_in_bytes: true, wait: false, mean_packet: 1000, ..Red::default() };
    let adaptive = AdaptiveRed { target: ms(10), most: 0.4, ..AdaptiveRed::default() };
    let estimate = DelayEstimate::Timestamps;
    let pie = Pie { estimate, ecn_threshold: 0.2, burst: ms(100), mark: true, ..Pie::default() };
    let fair = FqCoDel { quantum: 300, queues: 16, memory: 1_000_000, target: ms(1), ..FqCoDel::default() };
    for (said, expected) in [
        ("{ red = {} }", Discipline::Red(Red::default())),
        ("{ red = { min = 7, bytes = true, queue_in_bytes = true, wait = false, mean_packet = '1 kB' } }", Discipline::Red(red)),
        ("{ adaptive-red = {} }", Discipline::AdaptiveRed(AdaptiveRed::default())),
        ("{ adaptive-red = { target = '10 ms', most = 0.4 } }", Discipline::AdaptiveRed(adaptive)),
        ("{ pie = {} }", Discipline::Pie(Pie::default())),
        ("{ pie = { estimate = 'timestamps', ecn_threshold = '20 %', burst = '100 ms', mark = true } }", Discipline::Pie(pie)),
        ("{ fq-codel = {} }", Discipline::FqCoDel(FqCoDel::default())),
        ("{ fq-codel = { quantum = '300 B', queues = 16, memory = '1 MB', target = '1 ms' } }", Discipline::FqCoDel(fair)),
    ] {
        let [there, back] = wire(&format!("[path]\nrate = '1 Mbps'\nforward.discipline = {said}\n{FLOW}"));
        assert_eq!((there.discipline, back.discipline), (Some(expected), None), "{said}");
    }
}

#[test]
fn policers_reach_the_link() {
    let [there, back] =
        wire(&format!("[path]\nrate = '9 Mbps'\nforward.policer = {{ rate = '2 Mbps', burst = '60 kB' }}\n{FLOW}"));
    assert_eq!(there.policer, Some(Policer { rate: BitRate::from_bps(2_000_000), burst: 60_000 }));
    assert_eq!(back.policer, None);
}

#[test]
fn what_a_policer_drops_has_its_cause_and_the_rest_its_rate() {
    let text = "[scenario]\nduration = '20 s'\n[path]\nrate = '50 Mbps'\ndelay = '10 ms'\n\
                forward.policer = { rate = '4 Mbps', burst = '40 kB' }\n[[flow]]\n";
    let tables = results(&Scenario::from_toml(text, "policed").unwrap());
    let policed = count(&tables, "dropped_policer");
    assert!(policed > 20, "{policed}");
    assert_eq!(count(&tables, "dropped_queue"), 0);
    let gone = count(&tables, "delivered_packets") + count(&tables, "in_flight_packets");
    assert_eq!(count(&tables, "offered_packets"), gone + policed);
    // What passes is at most depth and rate, and more than half of it is used.
    let octets = count(&tables, "delivered_octets");
    assert!((5_000_000..=10_040_000).contains(&octets), "{octets}");
    for (table, column, expected) in [
        (&tables.flows, "forward_dropped_policer", policed),
        (&tables.flows, "forward_dropped_queue", 0),
        (&tables.flows, "forward_dropped_other", 0),
        (&tables.runs, "packets_dropped_policer", policed),
    ] {
        assert_eq!(table.column_by_name(column).unwrap().as_primitive::<UInt64Type>().value(0), expected, "{column}");
    }
    let row = |name: &str| tables.losses.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (causes, classes) = (row("true_cause"), row("true_class"));
    let of: Vec<_> = (0..causes.len()).filter(|&row| causes.value(row) == "policer").collect();
    assert!(of.len() > 20 && of.iter().all(|&row| classes.value(row) == "congestion"));
}

#[test]
fn mistakes_are_named() {
    for (fields, message) in [
        (
            "forward.policer = { rate = '1 Mbps', burst = '2 GiB' }",
            "path.forward.policer.burst: found 2147483648 B; allowed: 1 B to 1 GiB",
        ),
        ("policer = { rate = '1 Mbps' }", "path.policer.burst: missing"),
        (
            "jitter = { mean = '1 ms', law = 'normal' }",
            "path.jitter.deviation: missing; allowed: a time above zero, at most the mean",
        ),
        (
            "jitter = { mean = '1 ms', law = 'normal', deviation = '2 ms' }",
            "path.jitter.deviation: found 2 ms; allowed: a time above zero, at most the mean",
        ),
        ("jitter = { mean = '1 ms', shape = 2 }", "path.jitter.shape: only the law of Pareto has a shape"),
        (
            "forward.jitter = { mean = '1 ms', law = 'pareto', shape = 1 }",
            "path.forward.jitter.shape: found 1; allowed: a number above 1, at most 1000",
        ),
        ("reorder = { share = 0.1 }", "path.reorder: found neither; allowed: either `late` or `early`, a time above zero"),
        (
            "outage = [{ at = '1 s', lasts = '2 s', every = '2 s' }]",
            "path.outage.every: found 2 s; allowed: a time longer than each outage lasts (in the mean)",
        ),
        (
            "outage = [{ at = '1 s', lasts = 2 }]",
            "path.outage[0].lasts: found 2; allowed: a time such as \"500 ms\", or { mean = \"500 ms\", law = \"exponential\" }",
        ),
        (
            "outage = [{ at = '1 s', lasts = { mean = '1 s', law = 'pareto', shape = 1 } }]",
            "path.outage.lasts.shape: found 1; allowed: a number above 1, at most 1000, for `law = \"pareto\"`",
        ),
        ("outage = [{ at = '1 s', lasts = { mean = '1 s' } }]", "path.outage[0].lasts.law: missing"),
        (
            "outage = [{ at = '1 s', lasts = '1 s', every = '2 s', gap = '1 s' }]",
            "path.outage.gap: found beside `every`; allowed: one of the two",
        ),
        (
            "change = [{ at = '2 s', delay = '1 ms' }, { at = '1 s', delay = '2 ms' }]",
            "path.change.at: found 1.000000000 s; allowed: a time after the one before it",
        ),
        ("change = [{ at = '2 s' }]", "path.change: found nothing but a time; allowed: rate, delay, queue or channel"),
        (
            "change = [{ at = '2 s', channel.pattern = 'p' }]",
            "path.change[0].channel.pattern: a pattern is possible for wires only",
        ),
        ("trace = 'a.up'", "path.trace: a trace takes the place of a rate; allowed: either rate or trace"),
        ("trace_octets = '100 B'", "path.trace_octets: `trace_octets` says nothing without a trace"),
        (
            "discipline = { codel = { interval = '1 ms' } }",
            "path.discipline.codel.interval: found 1 ms; allowed: at least the target",
        ),
        (
            "discipline = { red = { mean_packet = '70 kB' } }",
            "path.discipline.red.mean_packet: found 70000 B; allowed: 1 B to 65535 B",
        ),
        (
            "discipline = { pie = { ecn_threshold = 0 } }",
            "path.discipline.pie.ecn_threshold: found 0; allowed: a number above 0, at most 1",
        ),
        ("discipline = { pie = { alpha = 0 } }", "path.discipline.pie.alpha: found 0; allowed: a number above 0, at most 1000"),
        ("discipline = { fq-codel = { queues = 100000 } }", "path.discipline.fq-codel.queues: found 100000; allowed: 1 to 65536"),
        (
            "discipline = { fq-codel = { quantum = '70 kB' } }",
            "path.discipline.fq-codel.quantum: found 70000 B; allowed: 1 B to 65535 B",
        ),
        (
            "discipline = { fq-codel = { target = '0 s' } }",
            "path.discipline.fq-codel.target: found 0 s; allowed: a time above zero",
        ),
        (
            "reverse.discipline = { adaptive-red = { most = 0.001 } }",
            "path.reverse.discipline.adaptive-red.most: found 0.001; allowed: at least least",
        ),
    ] {
        let text = format!("[path]\nrate = '1 Mbps'\n{fields}\n{FLOW}");
        let error = Scenario::from_toml(&text, "t").unwrap_err().to_string();
        let (_, told) = error.split_once(": ").unwrap();
        assert_eq!(told, message, "{fields}");
    }
}

#[test]
fn packets_are_lost_in_either_direction_by_a_rate_of_its_own() {
    for (there, back) in [(0.02, 0.0), (0.0, 0.05), (0.02, 0.1)] {
        let lossy = |way, share| if share > 0.0 { format!("{way}.channel.loss = {share}\n") } else { String::new() };
        let text = format!(
            "[scenario]\nduration = '600 s'\n[path]\nrate = '10 Mbps'\ndelay = '1 ms'\nqueue = '1000 pkt'\n{}{}{FLOW}",
            lossy("forward", there),
            lossy("reverse", back)
        );
        let tables = results(&Scenario::from_toml(&text.replace("1 MB", "20 MB"), "t").unwrap());
        // Rows 2 and 3 are the two directions of the shaped link.
        let column = |name: &str, row| tables.links.column_by_name(name).unwrap().as_primitive::<UInt64Type>().value(row) as f64;
        for (row, share) in [(2, there), (3, back)] {
            let (erased, offered) = (column("dropped_erased", row), column("offered_packets", row));
            // Of more than 5000 packets; four standard deviations.
            let tolerance = 4.0 * (share * (1.0 - share) / offered).sqrt();
            assert!(offered > 5000.0 && (erased / offered - share).abs() <= tolerance, "{erased} of {offered}, not {share}");
        }
    }
}

#[test]
fn a_trace_is_read_from_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("s.toml", &format!("[path]\nrate = '1 Mbps'\nforward.trace = 'day-{{run}}.up'\nforward.trace_octets = '500 B'\n{FLOW}"));
    file("day-0.up", "10\n20\n");
    file("day-1.up", "10\n5\n");
    let scenario = Scenario::load(folder.path().join("s.toml")).unwrap();
    let wires = scenario.wires(0).unwrap();
    let spec = &wires.links[0].ways[0][1].spec;
    let trace = spec.trace.clone().unwrap();
    assert_eq!((spec.trace_octets, trace.mean_bps(500)), (500, 400_000.0));
    assert_eq!(wires.links[0].ways[1][0].spec.trace, None, "the way back has a rate");
    let error = scenario.wires(1).unwrap_err().to_string();
    let spoilt = folder.path().join("day-1.up");
    let expected = format!(
        "s.toml:3: path.forward.trace: {}, line 2: time; found `5`; allowed: whole milliseconds, 10 or more",
        spoilt.display()
    );
    assert!(error.contains(&expected), "{error}");
    let missing = scenario.wires(2).unwrap_err().to_string();
    assert!(missing.contains("path.forward.trace: cannot read the trace file"), "{missing}");
}

#[test]
fn a_rate_and_a_trace_replace_each_other() {
    let scenario = Scenario::from_toml(&format!("[path]\nrate = '1 Mbps'\n{FLOW}"), "t").unwrap();
    let traced = scenario.with_override("path.trace", "a.up").unwrap();
    assert!(traced.document().path.as_ref().unwrap().rate.is_none());
    assert!(traced.with_override("path.rate", "2 Mbps").unwrap().document().path.as_ref().unwrap().trace.is_none());
}

fn example(name: &str) -> Scenario {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    Scenario::load(folder.join(name)).unwrap()
}

fn results(scenario: &Scenario) -> Tables {
    run(scenario, &RunOptions::default(), &mut Control::default()).unwrap()
}

/// A counter of the shaped link of a path in the direction of the data, which is the third.
fn count(tables: &Tables, name: &str) -> u64 {
    tables.links.column_by_name(name).unwrap().as_primitive::<UInt64Type>().value(2)
}

#[test]
fn hand_offs_lose_or_hold() {
    let scenario = example("hand-off.toml");
    let tables = results(&scenario);
    assert!(count(&tables, "dropped_down") > 10 && count(&tables, "duplicated_packets") > 0);
    let causes = tables.losses.column_by_name("true_cause").unwrap().as_string::<i32>().clone();
    let classes = tables.losses.column_by_name("true_class").unwrap().as_string::<i32>().clone();
    let down: Vec<_> = (0..causes.len()).filter(|&row| causes.value(row) == "link-down").collect();
    assert!(!down.is_empty() && down.iter().all(|&row| classes.value(row) == "corruption"));
    let held = scenario.with_override("path.outage[0].packets", "held").unwrap();
    let tables = results(&held);
    assert_eq!(count(&tables, "dropped_down"), 0);
    assert!(count(&tables, "delivered_packets") > 0);
}

#[test]
fn a_delivery_trace_is_what_a_link_carries() {
    let tables = results(&example("cellular.toml"));
    let delivered = count(&tables, "delivered_octets");
    // 30 s at 6.5 Mbit/s in the mean are 24.4 MB; a queue of 200 packets keeps CUBIC busy.
    assert!((18_000_000..24_500_000).contains(&delivered), "{delivered}");
}

/// Which of the first hundred outages took packets of the stream in that direction, by the number of the outage.
fn struck(scheme: &str) -> [BTreeSet<usize>; 2] {
    let text = format!(
        "[scenario]\nduration = '300 s'\nseed = 11\n[output]\ndrops = true\n[path]\nrate = '1 Mbps'\ndelay = '0 ms'\nqueue = '20 pkt'\n\
         outage = [{{ at = '2 s', lasts = {{ mean = '500 ms', law = 'exponential' }}, every = '5 s' }}]\n\
         [[flow]]\nscheme = '{scheme}'\n[[flow]]\nname = 'there'\ncbr = {{ rate = '20 kbps', packet = '50 B' }}\n\
         [[flow]]\nname = 'back'\nfrom = 'client'\nto = 'server'\ncbr = {{ rate = '20 kbps', packet = '50 B' }}\n"
    );
    let scenario = Scenario::from_toml(&text, "t").unwrap();
    let wires = scenario.wires(0).unwrap();
    let shaped = &wires.links[0].ways[0][1];
    let mut downtime = Downtime::new(&shaped.spec.outage, wires.seed, wires.run, &shaped.name);
    let tables = results(&scenario);
    let drops = tables.get("drops").unwrap();
    let text = |name: &str| drops.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (flows, causes) = (text("flow"), text("cause"));
    let times = drops.column_by_name("at_ns").unwrap().as_primitive::<UInt64Type>();
    let mut struck = [BTreeSet::new(), BTreeSet::new()];
    for row in (0..drops.num_rows()).filter(|row| causes.value(*row) == "link-down") {
        // Seen at the end of a transmission, of 12 ms at most.
        let seen = times.value(row);
        assert!(downtime.meets(seen.saturating_sub(12_500_000), seen), "{scheme}: {seen}");
        let outage = (seen / 1_000_000_000 - 2) / 5;
        match flows.value(row) {
            "there" => struck[0].insert(outage as usize),
            "back" => struck[1].insert(outage as usize),
            _ => continue,
        };
    }
    struck
}

#[test]
fn every_scheme_meets_the_same_hand_offs_in_both_directions() {
    let [there, back] = struck("newreno");
    assert!(there.len() > 50, "{there:?}");
    // Outages that are shorter than the 20 ms from packet to packet may pass unseen.
    assert!(there.symmetric_difference(&back).count() < 8, "{there:?} {back:?}");
    let [others, _] = struck("westwood");
    assert!(there.symmetric_difference(&others).count() < 8, "{there:?} {others:?}");
}

#[test]
fn a_capture_behind_the_queue_does_not_show_what_the_queue_refused() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("behind-queue");
    let text = "[scenario]\nduration = '5 s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
                [[link]]\nbetween = ['a', 'b']\nrate = '2 Mbps'\ndelay = '20 ms'\nqueue = '5 pkt'\n\
                [output]\ncapture = ['a', { at = 'a', behind_queue = true, file = 'behind' }]\n\
                [[flow]]\nfrom = 'a'\nto = 'b'\n";
    let scenario = Scenario::from_toml(text, "t").unwrap();
    let options = RunOptions { captures: Some(folder.clone()), ..RunOptions::default() };
    let tables = run(&scenario, &options, &mut Control::default()).unwrap();
    let refused = tables.links.column_by_name("dropped_queue").unwrap().as_primitive::<UInt64Type>().value(0);
    // Comments stand in the file as they are; `repairs: queue-full` is none of these.
    let lost = |file: &str| {
        let octets = std::fs::read(folder.join(file)).unwrap();
        octets.windows(15).filter(|part| part == b"a>b: queue-full").count() as u64
    };
    assert!(refused > 10, "{refused}");
    assert_eq!((lost("scenario-0-a.pcapng"), lost("scenario-0-behind.pcapng")), (refused, 0));
}
