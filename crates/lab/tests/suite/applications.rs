//! Applications that give out data at a rate, and those that play what arrives.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use whyloss_lab::arrow_array::Array as _;
use whyloss_lab::{run, Control, RunOptions, Scenario, Tables};

fn tables(text: &str) -> Tables {
    let scenario = Scenario::from_toml(text, "t").unwrap();
    run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap()
}

fn count(tables: &Tables, table: &str, column: &str) -> u64 {
    tables.get(table).unwrap().column_by_name(column).unwrap().as_primitive::<UInt64Type>().value(0)
}

fn number(tables: &Tables, table: &str, column: &str) -> f64 {
    tables.get(table).unwrap().column_by_name(column).unwrap().as_primitive::<Float64Type>().value(0)
}

fn world(rate: &str, path: &str, flow: &str) -> String {
    format!(
        "[scenario]\nduration = '60 s'\n[output]\nsample = '1 s'\n[path]\nrate = '{rate}'\ndelay = '20 ms'\nqueue = '50 pkt'\n{path}\n\
         [[flow]]\nscheme = 'newreno'\n{flow}"
    )
}

const PLAYED: &str = "stream = { rate = '1 Mbps' }\nplayback = { enough = '90 %' }\n";

fn slots(tables: &Tables) -> [u64; 3] {
    ["playback_slots", "playback_met", "playback_met_buffered"].map(|column| count(tables, "transfers", column))
}

#[test]
fn a_path_with_room_carries_every_slot_and_one_without_carries_none() {
    let wide = tables(&world("10 Mbps", "", PLAYED));
    // The first slot lacks the round trips of the opening, 80 ms of 1000: still more than 90 %.
    assert_eq!(slots(&wide), [60, 60, 60]);
    let goodput = number(&wide, "transfers", "goodput_bps");
    assert!((0.99e6..=1.001e6).contains(&goodput), "{goodput}");
    assert_eq!(count(&wide, "flows", "retransmissions"), 0);
    let narrow = tables(&world("500 kbps", "", PLAYED));
    assert_eq!(slots(&narrow), [60, 0, 0]);
}

#[test]
fn what_tcp_does_not_take_waits_and_comes_later() {
    let outage = "outage = [{ at = '10 s', lasts = '2 s' }]";
    let interrupted = tables(&world("10 Mbps", outage, PLAYED));
    let [slots, met, buffered] = slots(&interrupted);
    // Two slots are empty, and the back-off of the timer may take one or two more.
    assert_eq!(slots, 60);
    assert!((56..=58).contains(&met), "{met}");
    assert!(buffered >= met, "what is left over from the slot that catches up helps");
    let goodput = number(&interrupted, "transfers", "goodput_bps");
    assert!((0.99e6..=1.001e6).contains(&goodput), "nothing is given up: {goodput}");
}

#[test]
fn successes_are_what_the_samples_say() {
    let lossy = tables(&world("2 Mbps", "forward.channel.loss = '5 %'", PLAYED));
    let samples = lossy.get("samples").unwrap();
    let octets = |name: &str| samples.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec();
    let (at, delivered, sent) = (octets("at_ns"), octets("octets_delivered"), octets("data_octets_sent"));
    assert_eq!((at[0], at[1], at.len()), (0, 1_000_000_000, 60));
    let met = delivered.windows(2).filter(|pair| pair[1] - pair[0] > 112_500).count() as u64;
    let [slots, counted, _] = slots(&lossy);
    assert!(met > 5 && met < 55, "{met}: the test has something to tell");
    // The slot that ends with the run has no sample at its end.
    assert_eq!(slots, 60);
    assert!((met..=met + 1).contains(&counted), "{counted} against {met}");
    assert!(sent.windows(2).all(|pair| pair[0] <= pair[1]));
    let all = count(&lossy, "flows", "data_octets_sent");
    assert!(sent[sent.len() - 1] <= all && all > delivered[delivered.len() - 1]);
    let rate = number(&lossy, "flows", "sending_rate_bps");
    assert!((rate - all as f64 * 8.0 / 60.0).abs() < 1.0, "{rate}");
}

#[test]
fn a_run_says_how_its_flows_shared() {
    let text = "[scenario]\nduration = '30 s'\n[path]\nrate = '10 Mbps'\ndelay = '5 ms'\n\
                [[flow]]\nstream = { rate = '1 Mbps' }\n[[flow]]\nstream = { rate = '3 Mbps' }\n\
                [[flow]]\ncbr = { rate = '1 Mbps', packet = '500 B' }\n";
    let shared = tables(text);
    let (sum, fairness) = (number(&shared, "runs", "system_goodput_bps"), number(&shared, "runs", "fairness"));
    assert!((3.98e6..4.0e6).contains(&sum), "{sum}: the datagrams do not count");
    // (1 + 3)^2 / (2 (1 + 9)) = 0.8.
    assert!((fairness - 0.8).abs() < 0.001, "{fairness}");
}

#[test]
fn schemes_and_sides_of_traffic_have_their_shares() {
    let text = "[scenario]\nduration = '30 s'\n[path]\nrate = '10 Mbps'\ndelay = '5 ms'\n\
                [[flow]]\nscheme = 'cubic'\ncount = 2\nstream = { rate = '400 kbps' }\ntraffic = 'main'\n\
                [[flow]]\nscheme = 'newreno'\nstream = { rate = '1200 kbps' }\ntraffic = 'main'\n\
                [[flow]]\nscheme = 'cubic'\nstream = { rate = '2 Mbps' }\ntraffic = 'cross'\n\
                [[flow]]\nscheme = 'cubic'\nstream = { rate = '200 kbps' }\n\
                [[flow]]\ncbr = { rate = '400 kbps', packet = '500 B' }\n\
                [[flow]]\nscheme = 'tfrc'\ndatagrams = { rate = '2 Mbps', packet = '1000 B' }\ntraffic = 'cross'\n";
    let shared = tables(text);
    let protocols = shared.get("protocols").unwrap();
    let schemes = protocols.column_by_name("scheme").unwrap().as_string::<i32>();
    assert_eq!(
        schemes.iter().flatten().collect::<Vec<_>>(),
        ["cubic", "newreno", "cbr", "tfrc"],
        "in their order in the scenario"
    );
    let all = |column: &str| protocols.column_by_name(column).unwrap().as_primitive::<Float64Type>().values().to_vec();
    let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
    // What the application gives less the round trips of the opening.
    let (sums, means) = (all("protocol_goodput_bps"), all("mean_goodput_bps"));
    assert!(close(sums[0], 3e6) && close(means[0], 0.75e6), "{sums:?} {means:?}");
    assert!(close(sums[1], 1.2e6) && means[1] == sums[1] && all("fairness")[1] == 1.0);
    // (0.4 + 0.4 + 1.2) / 3 over 2: flows on neither side do not count.
    let atgr = number(&shared, "runs", "atgr");
    assert!((atgr - 1.0 / 3.0).abs() < 0.01, "{atgr}");
    let alone = tables(&text.replace("traffic = 'cross'\n", ""));
    assert!(alone.get("runs").unwrap().column_by_name("atgr").unwrap().is_null(0), "there is no cross traffic");
}

#[test]
fn smoothness_is_that_of_what_is_sent_in_each_bin() {
    // Data comes for half a second, then there is silence as long.
    let flow = "stream = { rate = '1 Mbps', write = '1250 B', burst = '500 ms', idle = '500 ms' }\n";
    let smoothness = |bin: u64| {
        let bins = format!("smoothness = {{ bin = '{bin} ms', from = '2 s' }}");
        let text = world("10 Mbps", "", flow).replace("sample = '1 s'", &bins);
        let tables = tables(&text);
        assert_eq!(tables.samples.num_rows(), 0, "no log is kept for it");
        assert_eq!(count(&tables, "runs", "smoothness_bin_ns"), bin * 1_000_000);
        number(&tables, "flows", "smoothness")
    };
    // As much as nothing and all in turns: mean and standard deviation are equal. Over a whole period nothing of it is left.
    let (half, whole, several) = (smoothness(500), smoothness(1000), smoothness(4000));
    assert!((0.9..=1.0).contains(&half), "{half}");
    assert!(whole < 0.05 && several < 0.05, "{whole} {several}");
}

#[test]
fn a_stream_that_stops_closes_its_connection() {
    let flow = "stream = { rate = '1 Mbps', stop = '30 s', write = '1000 B' }\nplayback.enough = 0.5\n";
    // Long enough for the sender's TIME-WAIT.
    let stopped = tables(&world("10 Mbps", "", flow).replace("60 s", "200 s"));
    let closing = stopped.get("flows").unwrap().column_by_name("closing").unwrap().as_string::<i32>().clone();
    assert_eq!((closing.is_null(0), closing.value(0)), (false, "normal"));
    // 125 octets a millisecond, 1000 at a time, for 30 s.
    assert_eq!(count(&stopped, "flows", "octets_delivered"), 3_750_000);
    assert_eq!(slots(&stopped), [30, 30, 30], "nothing is played of what is not given");
}

#[test]
fn bursts_have_their_share_of_time() {
    let text = "[scenario]\nduration = '2000 s'\n[path]\nrate = '10 Mbps'\ndelay = '1 ms'\n[[flow]]\n\
                cbr = { rate = '1 Mbps', packet = '500 B', burst = { mean = '600 ms', law = 'exponential' }, \
                idle = { mean = '400 ms', law = 'exponential' } }\n";
    let packets = count(&tables(text), "links", "offered_packets") as f64 / 250.0;
    // Seconds of data, 4 ms a packet: 60 % of 2000 with half a packet more a burst, 1204. A cycle has 0.6 s with a standard deviation that gives
    // 2000 cycles one of 21 s.
    assert!((packets - 1204.0).abs() < 85.0, "{packets}");
}

#[test]
fn mistakes_are_named() {
    for (flow, message) in [
        ("stream = { rate = '1 Mbps' }\nsize = '1 MB'", "flow[0].stream: a stream takes the place of a size; allowed: either stream or size"),
        (
            "stream = { rate = '1 Mbps', burst = '1 s' }",
            "flow[0].stream: bursts need silences, and silences bursts; allowed: both `burst` and `idle`, or neither",
        ),
        (
            "stream = { rate = '1 Mbps', burst = '0 s', idle = '1 s' }",
            "flow[0].stream.burst: found 0 s; allowed: a time above zero",
        ),
        (
            "stream = { rate = '1 Mbps', write = '2 MiB' }",
            "flow[0].stream.write: found \"2097152 B\"; allowed: 1 B to 1 MiB",
        ),
        ("start = '2 s'\nstream = { rate = '1 Mbps', stop = '1 s' }", "flow[0].stream.stop: it stops before it starts; allowed: a time after `start`"),
        (
            "playback = { enough = 0.9 }",
            "flow[0].playback.rate: missing: nothing says at which rate it plays; allowed: a rate such as \"1 Mbps\"",
        ),
        ("playback = { enough = 0.9, rate = '1 Mbps', slot = '1 us' }", "flow[0].playback.slot: found 1 us; allowed: 1 ms or more"),
        ("size = '1 MB'\nstriped = 2\nplayback = { enough = 0.9, rate = '1 Mbps' }", "flow[0].playback: a striped transfer is not played"),
        ("scheme = 'dccp-ccid2'\nstream = { rate = '1 Mbps' }", "flow[0].scheme: DCCP and TFRC know nothing of TCP; found \"dccp-ccid2\" with fields of TCP; allowed: name, from, to, traffic, count, start, start_spread, playback, datagrams, parameters"),
        ("size = '1 MB'\nweb = {}", "flow[0].web: pages take the place of a size or a stream; allowed: one of web, stream, size"),
        ("web = { files_shape = 0 }", "flow[0].web.files_shape: found 0; allowed: a number from 0.1 to 1000"),
        ("cbr = { rate = '1 Mbps', packet = '500 B', idle = '1 s' }", "flow[0].cbr: bursts need silences, and silences bursts; allowed: both `burst` and `idle`, or neither"),
        ("cbr = { rate = '1 Mbps', packet = '500 B', jitter = 2 }", "flow[0].cbr.jitter: found 2; allowed: a number from 0 to 1, such as 8.3e-6, or a percentage, such as \"2 %\""),
    ] {
        let text = format!("scenario.duration = '10 s'\n[path]\nrate = '1 Mbps'\n[[flow]]\n{flow}\n");
        let error = Scenario::from_toml(&text, "t").unwrap_err().to_string();
        let (_, told) = error.split_once(": ").unwrap();
        assert_eq!(told, message, "{flow}");
    }
}

#[test]
fn web_users_read_page_after_page() {
    let web = |path: &str, rate: &str| {
        let text = format!(
            "[scenario]\nduration = '600 s'\n[path]\nrate = '{rate}'\ndelay = '20 ms'\n{path}\n\
             [[flow]]\ncount = 1\nscheme = 'newreno'\nweb = {{ think = '1 s', largest = '1 MB' }}\n"
        );
        let tables = tables(&text);
        let (pages, octets) = (count(&tables, "transfers", "pages"), count(&tables, "transfers", "octets_delivered"));
        (pages, octets as f64 / pages as f64, number(&tables, "transfers", "mean_page_time_ns") / 1e9)
    };
    let (pages, octets, time) = web("", "10 Mbps");
    // Each page takes its time and a second more, to the last.
    assert!((pages as f64 * (time + 1.0) - 600.0).abs() < 10.0, "{pages} of {time}");
    assert!(time > 0.02 && time < 1.0, "{time}");
    // 1.37 files, 93 % of them of 20 kB in the mean and the rest of 376 kB in the cut tail: 62 kB, and 7 kB the standard error of 500 pages.
    assert!((34_000.0..90_000.0).contains(&octets), "{octets}");
    let (fewer, _, longer) = web("", "200 kbps");
    assert!(fewer < pages && longer > 2.0 * time, "a slow link makes users wait: {longer}");
    let (_, _, spoilt) = web("forward.channel.loss = '5 %'", "10 Mbps");
    assert!(spoilt > 1.2 * time, "losses do, too: {spoilt}");
}
