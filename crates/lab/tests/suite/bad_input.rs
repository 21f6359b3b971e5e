//! What the user is told about each mistake, word for word.

use std::fmt::Write;
use whyloss_lab::{parts, profiles, run, schemes, Control, Description, Error, RunOptions, Scenario, Sweep};

const PATH: &str = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '99 pkt'\n";
const FLOW: &str = "[[flow]]\nsize = '1 MB'\n";
const FREE: &str =
    "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[router]]\nname = 'r'\n[[link]]\nbetween = ['a', 'r']\nrate = '1 Mbps'\n";

/// The message, with lists that grow whenever an algorithm or a field is added written as their names.
fn message(error: &Error) -> String {
    assert_eq!(error.exit_status(), 2, "{error}");
    let mut text = error.to_string();
    let mut lists = vec![("<schemes>", names(schemes(), "scheme")), ("<profiles>", names(profiles(), "profile"))];
    for (list, kind) in [
        ("<congestion controls>", "congestion"),
        ("<differentiators>", "differentiator"),
        ("<reactions>", "reaction"),
        ("<timeout policies>", "timeout"),
        ("<receivers>", "receiver"),
    ] {
        lists.push((list, names(parts(), kind)));
    }
    if let Some((before, _)) = text.split_once("allowed: mss, ") {
        text = format!("{before}allowed: <fields of tcp>");
    }
    for (name, list) in lists {
        text = text.replace(&format!("allowed: {list}"), &format!("allowed: {name}"));
    }
    text
}

fn names(all: Vec<Description>, kind: &str) -> String {
    all.into_iter().filter(|one| one.kind == kind).map(|one| one.name).collect::<Vec<_>>().join(", ")
}

fn table(cases: &[(&str, String)], told: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (name, document) in cases {
        write!(text, "{name}\n    {}\n", told(document)).unwrap();
    }
    text
}

#[test]
fn scenarios() {
    let path = |lines: &str| format!("{PATH}{lines}\n{FLOW}");
    let flow = |lines: &str| format!("{PATH}[[flow]]\nsize = '1 MB'\n{lines}\n");
    let dccp = |lines: &str| format!("[scenario]\nduration = '1 s'\n{PATH}[[flow]]\nscheme = 'dccp-ccid2'\n{lines}\n");
    let free = |lines: &str| format!("{FREE}{lines}\n");
    let moving = |moves: &str| {
        let links = ["left", "right"].map(|name| format!("[[link]]\nname = '{name}'\nbetween = ['r', 'm']\nrate = '1 Mbps'\n"));
        let host = format!("[[host]]\nname = 'm'\nmove = [{moves}]\n");
        format!("{FREE}{host}{}[[flow]]\nfrom = 'a'\nto = 'm'\nsize = '1 MB'\n", links.concat())
    };
    let cases: Vec<(&str, String)> = vec![
        ("no TOML", "[path\nrate = 1".into()),
        ("the same field twice", path("rate = '2 Mbps'")),
        ("a date", path("forward.delay = 2004-08-01")),
        ("unknown table", format!("{PATH}{FLOW}[scenari]\nseed = 1")),
        ("unknown field", path("rte = '1 Mbps'")),
        ("unknown field deep inside", path("forward.channel.bre = 1e-6")),
        ("unknown field like no other", path("colour = 'blue'")),
        ("a radio and no station", free("[[flow]]\nfrom = 'a'\nto = 'b'\nsize = '1 MB'\n[radio]")),
        ("a chain without hops", format!("[chain]\nhops = 0\n{FLOW}")),
        ("a distance without a unit", format!("[chain]\nhops = 5\nspacing = 200\n{FLOW}")),
        ("a radio that notices late", format!("[chain]\nhops = 5\n[radio]\ncca = '20 us'\n{FLOW}")),
        ("a word like another", format!("[chain]\nhops = 5\n[radio]\nlocking = 'sense'\n{FLOW}")),
        ("stations out of reach", format!("[chain]\nhops = 2\nspacing = '251 m'\n{FLOW}")),
        ("a pattern in the air", format!("[chain]\nhops = 5\n[radio.channel]\npattern = 'a.bits'\n{FLOW}")),
        ("two errors at a host", format!("[chain]\nhops = 5\n[chain.input.data]\nloss = '1 %'\nber = 1e-6\n{FLOW}")),
        ("a chain and a path", format!("{PATH}{FLOW}[chain]\nhops = 5\n")),
        ("rate without a unit", path("forward.rate = 1000")),
        ("rate with a unit of time", path("forward.rate = '10 ms'")),
        ("rate with a wrong prefix", path("forward.rate = '384 Kbps'")),
        ("negative rate", path("forward.rate = '-5 Mbps'")),
        ("no rate at all", "[path]\ndelay = '10 ms'\n[[flow]]\nsize = '1 MB'".into()),
        ("delay with a unit of size", path("forward.delay = '10 MB'")),
        ("negative delay", path("forward.delay = '-1 ms'")),
        ("a queue of 0", path("forward.queue = '0 pkt'")),
        ("a queue without a unit", path("forward.queue = 99")),
        ("a queue in an unknown unit", path("forward.queue = '99 packets'")),
        ("a bit error ratio above 1", path("forward.channel.ber = 1.5")),
        ("a bit error ratio of 1", path("forward.channel.ber = 1")),
        ("a bit error ratio as text", path("forward.channel.ber = 'often'")),
        ("a negative percentage", path("forward.channel.loss = '-2 %'")),
        ("two kinds of error", path("forward.channel = { ber = 1e-6, loss = '1 %' }")),
        ("a pattern's end without a pattern", path("forward.channel = { ber = 1e-6, pattern_end = 'clean' }")),
        ("a chain without its second number", path("forward.channel.markov.stay_good = 0.99")),
        ("an effect that does not exist", path("forward.channel = { ber = 1e-6, effect = 'damaged' }")),
        ("a middlebox at a host", path("[[middlebox]]\nat = 'client'\nlink = 'path'\nkind = 'eln'")),
        ("a middlebox nowhere", path("[[middlebox]]\nat = 'emulater'\nlink = 'path'\nkind = 'eln'")),
        ("a middlebox without its link", path("[[middlebox]]\nat = 'emulator'\nlink = 'paht'\nkind = 'eln'")),
        ("a middlebox of no kind", path("[[middlebox]]\nat = 'emulator'\nlink = 'path'\nkind = 'enl'")),
        (
            "a window that nobody measures over",
            path("[[middlebox]]\nat = 'emulator'\nlink = 'path'\nkind = 'eln'\nparameters.window = 10"),
        ),
        ("a window of nothing", path("[[middlebox]]\nat = 'emulator'\nlink = 'path'\nkind = 'ceten'\nparameters.window = 0")),
        ("a move to a link that it does not have", moving("{ at = '1 s', link = 'lefft' }")),
        ("a move to where it is", moving("{ at = '1 s', link = 'left' }")),
        ("a move before the last is over", moving("{ at = '1 s', link = 'right', away = '2 s' }, { at = '2 s', link = 'left' }")),
        ("state that is never sent", moving("{ at = '1 s', link = 'right', state_rate = '0 bps' }")),
        ("a discipline that does not exist", path("discipline = 'baised'")),
        ("a threshold out of order", path("forward.discipline.red = { min = 10, max = 5 }")),
        ("a weight above 1", path("discipline.warn = { threshold = 10, weight = 2 }")),
        ("a warning without a threshold", path("discipline.warn.weight = 1")),
        ("no network", FLOW.into()),
        ("two networks", format!("{PATH}[dumbbell]\nbottleneck.rate = '1 Mbps'\n{FLOW}")),
        ("nothing is sent", PATH.into()),
        ("it cannot end", format!("{PATH}[[flow]]\n")),
        ("it ends at once", format!("[scenario]\nduration = '0 s'\n{PATH}{FLOW}")),
        ("a negative seed", format!("[scenario]\nseed = -1\n{PATH}{FLOW}")),
        ("a flow of no octets", format!("{PATH}[[flow]]\nsize = '0 B'")),
        ("no flow in a flow", flow("count = 0")),
        ("striped over none", flow("striped = 0")),
        ("striped without a size", format!("[scenario]\nduration = '1 s'\n{PATH}[[flow]]\nstriped = 2")),
        ("a chunk larger than the send buffer", flow("striped = 2\nchunk = '1 MB'\ntcp.send_buffer = '64 KiB'")),
        ("an unknown profile", flow("profile = 'freebsd'")),
        ("an unknown scheme", flow("scheme = 'new-reno'")),
        ("an unknown scheme like no other", flow("scheme = 'quantum'")),
        ("an unknown congestion control", flow("congestion = 'cubik'")),
        ("an unknown differentiator", flow("differentiator = 'reportet'")),
        ("an unknown differentiator in shadow", flow("shadows = ['none', 'non']")),
        ("an unknown reaction", flow("reaction = 'kep'")),
        ("an unknown timeout policy", flow("timeout = 'frto'")),
        ("an unknown receiver", flow("receiver = 'plane'")),
        ("parameters of a part that is not chosen", flow("parameters.cubic.beta = 0.7")),
        ("an unknown parameter", flow("congestion = 'reno'\nparameters.reno.beta = 0.5")),
        ("an unknown field of TCP", flow("tcp.init_window = 4")),
        ("a field of TCP with a wrong type", flow("tcp.sack = 'yes'")),
        ("an MSS of 0", flow("tcp.mss = 0")),
        ("an MSS that is too large", flow("tcp.mss = 70000")),
        ("an unknown recovery", flow("tcp.recovery = 'new-reno'")),
        ("an acknowledgement policy without its delay", flow("tcp.ack_policy = 'delayed'")),
        ("an acknowledgement policy with a wrong delay", flow("tcp.ack_policy = { delayed = 100 }")),
        ("timers that contradict each other", flow("tcp.min_rto = '2 min'")),
        ("a size for DCCP", flow("scheme = 'dccp-ccid2'")),
        ("what datagrams have without their scheme", flow("scheme = 'sack'\ndatagrams.packet = '1 kB'")),
        ("an unknown mode of DCCP", dccp("parameters.dccp-ccid2.mode = 'lenient'")),
        ("an unknown parameter of DCCP", dccp("parameters.dccp-ccid2.modus = 'rfc'")),
        ("parameters of the other DCCP", dccp("parameters.dccp-ccid3.mode = 'rfc'")),
        ("a part of TCP for DCCP", dccp("congestion = 'cubic'")),
        ("more coverage than data", dccp("datagrams.packet = '8 B'\nparameters.dccp-ccid2.coverage = 15")),
        ("packets without data", dccp("datagrams.packet = '0 B'")),
        ("DCCP that stops before it starts", dccp("start = '2 s'\ndatagrams.stop = '1 s'")),
        ("a scheme that is nearly DCCP", flow("scheme = 'dccp-ccid4'")),
        (
            "datagrams with a scheme",
            format!(
                "[scenario]\nduration = '1 s'\n{PATH}[[flow]]\nscheme = 'sack'\ncbr = {{ rate = '1 Mbps', packet = '210 B' }}"
            ),
        ),
        (
            "datagrams without room for headers",
            format!("[scenario]\nduration = '1 s'\n{PATH}[[flow]]\ncbr = {{ rate = '1 Mbps', packet = '20 B' }}"),
        ),
        ("a flow from a host that does not exist", flow("from = 'serve'")),
        ("a flow from a router", flow("from = 'emulator'")),
        ("a flow to itself", flow("to = 'server'")),
        ("a flow without ends", free(FLOW)),
        ("no way from end to end", free("[[flow]]\nsize = '1 MB'\nfrom = 'a'\nto = 'b'")),
        ("two nodes with one name", free("[[host]]\nname = 'a'")),
        ("two links with one name", free("[[link]]\nbetween = ['a', 'r']\nrate = '1 Mbps'")),
        ("two flows with one name", format!("{PATH}[[flow]]\nname = 'x'\nsize = '1 B'\n[[flow]]\nname = 'x'\nsize = '1 B'")),
        ("a link to a node that does not exist", free("[[link]]\nbetween = ['b', 'q']\nrate = '1 Mbps'")),
        ("a link with one end", free("[[link]]\nbetween = ['b']\nrate = '1 Mbps'")),
        ("a link from a node to itself", free("[[link]]\nbetween = ['b', 'b']\nrate = '1 Mbps'")),
        ("a link without a rate", free("[[link]]\nbetween = ['b', 'r']")),
        ("a link that is no table", format!("link = 3\n{PATH}{FLOW}")),
        ("flows that are no list", format!("flow = 'much'\n{PATH}")),
        ("a capture at a node that does not exist", path("[output]\ncapture = ['serve']")),
        ("a capture at a link that is elsewhere", path("[output]\ncapture = [{ at = 'server', link = 'path' }]")),
        ("a capture of nothing", path("[output]\ncapture = [{ at = 'server', snaplen = 0 }]")),
        ("a capture with odd times", path("[output]\ncapture = [{ at = 'server', resolution = '3 us' }]")),
        ("a capture behind the queue of a router", path("[output]\ncapture = [{ at = 'emulator', behind_queue = true }]")),
        ("a capture that misses everything", path("[output]\ncapture = [{ at = 'server', holes = 1 }]")),
        ("two captures in one file", path("[output]\ncapture = ['server', { at = 'client', file = 'server' }]")),
        ("a capture in another folder", path("[output]\ncapture = [{ at = 'server', file = '../x' }]")),
        ("a capture that is a number", path("[output]\ncapture = [3]")),
        ("samples without an interval", path("[output]\nsample = '0 s'")),
        ("bins of hardly any length", path("[output]\nsmoothness.bin = '999 us'")),
        ("traffic on a side that there is not", flow("traffic = 'mian'")),
    ];
    let try_it = |scenario: Scenario| run(&scenario, &RunOptions::default(), &mut Control::default());
    insta::assert_snapshot!(table(&cases, |document| match Scenario::from_toml(document, "bad.toml").and_then(try_it) {
        Ok(_) => "NO MISTAKE WAS FOUND".to_owned(),
        Err(error) => message(&error),
    }));
}

#[test]
fn overrides() {
    let scenario = Scenario::from_toml(&format!("{PATH}{FLOW}"), "good.toml").unwrap();
    let cases: Vec<(&str, String)> = [
        ("no value", "path.rate"),
        ("no path", "=3"),
        ("a path that ends in a dot", "path.=3"),
        ("an unknown field", "path.rat=1 Mbps"),
        ("a wrong unit", "path.rate=1 MB"),
        ("an element that does not exist", "flow[1].size=1 MB"),
        ("a list that does not exist", "link[0].rate=1 Mbps"),
        ("a field inside a value", "path.rate.bps=1"),
        ("an element by a name that none has", "flow[main].size=1 MB"),
        ("a whole table of nonsense", "path.forward={ rate = 3 }"),
    ]
    .map(|(name, argument)| (name, argument.to_owned()))
    .to_vec();
    insta::assert_snapshot!(table(&cases, |argument| match scenario.with_argument(argument) {
        Ok(_) => "NO MISTAKE WAS FOUND".to_owned(),
        Err(error) => message(&error),
    }));
}

#[test]
fn pattern_files() {
    let scenario = Scenario::load("tests/data/path.toml").unwrap();
    let cases: Vec<(&str, String)> = ["descending.bits", "truncated.bits", "text.bits", "absent.bits", "absent-{run}.bits"]
        .map(|file| (file, file.to_owned()))
        .to_vec();
    insta::assert_snapshot!(table(&cases, |file| {
        let scenario = scenario.with_override("path.forward.channel.pattern", file).unwrap();
        message(&run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap_err())
    }));
}

#[test]
fn sweeps() {
    let head = "[sweep]\nbase = 'path.toml'\n";
    let cases: Vec<(&str, String)> = vec![
        ("no base", "[sweep]\nruns = 3\n".into()),
        ("a base that does not exist", "[sweep]\nbase = 'absent.toml'\n".into()),
        ("no runs", format!("{head}runs = 0\n")),
        ("an unknown field", format!("{head}repetitions = 3\n")),
        ("an axis of two kinds", format!("{head}[[axis]]\nfield = 'path.rate'\nvalues = ['1 Mbps']\nfields = {{}}\nvariant = [{{ name = 'a' }}]\n")),
        ("an axis of nothing", format!("{head}[[axis]]\nname = 'x'\n")),
        ("an axis without values", format!("{head}[[axis]]\nfield = 'path.rate'\nvalues = []\n")),
        ("lists of different length", format!("{head}[[axis]]\nfields = {{ 'path.rate' = ['1 Mbps'], 'path.queue' = ['9 pkt', '8 pkt'] }}\n")),
        ("labels of another number", format!("{head}[[axis]]\nlabels = ['a']\nfields = {{ 'path.rate' = ['1 Mbps', '2 Mbps'] }}\n")),
        ("variants without a name", format!("{head}[[axis]]\n[[axis.variant]]\nname = 'a'\n")),
        ("two axes with one name", format!("{head}[[axis]]\nfield = 'path.rate'\nvalues = ['1 Mbps']\n[[axis]]\nfield = 'path.access.rate'\nvalues = ['1 Mbps']\n")),
        ("a name that tables use", format!("{head}[[axis]]\nname = 'run'\nfield = 'path.rate'\nvalues = ['1 Mbps']\n")),
        ("a name that tables use for the values as numbers", format!("{head}[[axis]]\nfield = 'flow[0].start'\nvalues = ['0 s', '1 s']\n")),
        ("a name that another axis uses so", format!("{head}[[axis]]\nfield = 'path.delay'\nvalues = ['0 s', '1 s']\n[[axis]]\nname = 'delay_ns'\nfield = 'path.rate'\nvalues = ['1 Mbps']\n")),
        ("a name that columns of shadows can have", format!("{head}[[axis]]\nname = 'verdict_spike'\nfield = 'path.rate'\nvalues = ['1 Mbps']\n")),
        ("a sweep that lies elsewhere", "[sweep]\nname = '../../elsewhere'\nbase = 'path.toml'\n".into()),
        ("a sweep that lies in the store", "[sweep]\nname = 'store'\nbase = 'path.toml'\n".into()),
        ("a sweep that lies above", "[sweep]\nname = '..'\nbase = 'path.toml'\n".into()),
        ("runs beyond the last number", format!("{head}first_run = 4294967295\n")),
        ("a field on two axes", format!("{head}[[axis]]\nname = 'a'\nfield = 'path.delay'\nvalues = ['1 ms', '3 ms']\n[[axis]]\nname = 'b'\nfield = 'path.delay'\nvalues = ['2 ms', '3 ms']\n")),
        ("a field on an axis and in a variant", format!("{head}[[axis]]\nfield = 'path.delay'\nvalues = ['1 ms', '3 ms']\n[[axis]]\nname = 'v'\n[[axis.variant]]\nname = 'as it is'\n[[axis.variant]]\nname = 'slow'\nset.'path.delay' = '10 ms'\n")),
        ("a field that another axis takes away", format!("{head}[[axis]]\nfield = 'path.forward.channel.ber'\nvalues = [1e-6]\n[[axis]]\nfield = 'path.forward.channel.loss'\nvalues = ['1 %']\n")),
        ("a field in what another axis sets", format!("{head}[[axis]]\nname = 'size'\nfield = 'flow[0].size'\nvalues = ['1 MB']\n[[axis]]\nname = 'all'\nlabels = ['two']\nfields.flow = [[{{ size = '2 MB' }}]]\n")),
        ("a value that does not fit", format!("{head}[[axis]]\nfield = 'path.rate'\nvalues = [\n  '1 Mbps',\n  '2 MB',\n]\n")),
        ("a field that does not exist", format!("{head}[[axis]]\nfield = 'path.forward.channel.bier'\nvalues = [0]\n")),
        ("an override that does not fit", format!("{head}[set]\n'flow[0].scheme' = 'sakc'\n")),
        ("a variant that does not fit", format!("{head}[[axis]]\nname = 'v'\n[[axis.variant]]\nname = 'a'\nset.'flow[0].tcp.mss' = '1 kB'\n")),
    ];
    insta::assert_snapshot!(table(&cases, |document| {
        match Sweep::from_toml(document, "bad.toml", "tests/data").and_then(|sweep| sweep.plan()) {
            Ok(_) => "NO MISTAKE WAS FOUND".to_owned(),
            Err(error) => message(&error),
        }
    }));
}

#[test]
fn selections_and_arguments_of_sweeps() {
    let sweep = || Sweep::load("tests/data/sweep.toml").unwrap();
    let argument = |text: &str| sweep().with_argument(text).unwrap().plan().unwrap_err();
    let only = |axis: &str, labels: &[&str]| {
        let labels: Vec<_> = labels.iter().map(|label| (*label).into()).collect();
        sweep().plan().unwrap().only(axis, &labels).unwrap_err()
    };
    let at = |points: &[u32]| sweep().plan().unwrap().at(&points.iter().copied().collect()).unwrap_err();
    let counts = |first: u32, point: u32, count: u32| {
        sweep().with_runs(first..first + 1).with_run_counts([(point, count)].into()).plan().unwrap_err()
    };
    let told = [
        ("a field of an axis", argument("path.delay=1 s")),
        ("a field of a variant", argument("flow[0].scheme=cubic")),
        ("a field that does not exist", argument("path.dely=1 s")),
        ("no step", only("delay", &[])),
        ("a step that does not exist", only("delay", &["5 ms", "7 ms"])),
        ("no point", at(&[])),
        ("a point that does not exist", at(&[0, 4])),
        ("runs beyond the last number", sweep().with_runs_from(u32::MAX, 2).unwrap_err()),
        ("runs of a point that does not exist", counts(0, 4, 5)),
        ("no runs of a point", counts(0, 3, 0)),
        ("more runs of a point than have numbers", counts(u32::MAX - 2, 3, 4)),
    ];
    let cases = told.each_ref().map(|(name, error)| (*name, message(error)));
    insta::assert_snapshot!(table(&cases, str::to_owned));
}

#[test]
fn a_file_that_is_no_scenario_by_its_size_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((64 << 20) + 1).unwrap();
    for read in [Scenario::load(file.path()).err(), Sweep::load(file.path()).err()] {
        let told = format!("{}: this is too large for a scenario or a sweep; allowed: 64 MiB", file.path().display());
        assert_eq!(message(&read.expect("refused")), told);
    }
}

#[test]
fn json_is_told_without_lines() {
    let json = serde_json::json!({ "path": { "rate": "1 Mbps", "queue": 0 }, "flow": [{ "size": "1 MB" }] });
    let error = Scenario::from_json(&json, "scenario").unwrap_err();
    assert!(message(&error).starts_with("scenario: path.queue: found 0; allowed: at least \"1 pkt\""), "{error}");
}
