//! What is loaded stays without a process; what is unloaded, or was never loaded to the end, leaves nothing.
#![cfg(feature = "bpf")]

mod support;

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use libbpf_rs::{Link, MapCore as _, MapHandle};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::traffic::{connect_from, control_of, set_control};
use support::{
    available, can_load, job_of_child, private_place, repetitions, soon, start_child, start_child_under, within, Loaded,
};
use whyloss_kernel::installed::Installed;
use whyloss_kernel::place::{names, Place};
use whyloss_kernel::select::Match;
use whyloss_kernel::{check, commands, consequences, load, select, Error};
use whyloss_net::namespace::Namespace;

/// Not a test: what [`start_child`] starts.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let job = job_of_child().unwrap_or_default();
    match job.split(' ').collect::<Vec<_>>()[..] {
        ["load", ref controls @ ..] => drop(load::load(&Place::default(), &owned(controls)).expect("loads")),
        ["unload"] => drop(load::unload(&Place::default()).expect("unloads")),
        ["command", "load", ref controls @ ..] => drop(commands::load(&owned(controls)).expect("loads")),
        ["lend", ref controls @ ..] => {
            let _lent = load::lend(&Place::default(), &owned(controls)).expect("loads");
            std::thread::sleep(Duration::from_secs(60));
        }
        ["command", "unload", "politely"] => {
            let refused = commands::unload(false).expect_err("it is another's");
            assert!(refused.is_refusal() && refused.to_string().contains("--force"), "{refused}");
        }
        ["command", "list"] => assert!(commands::list().expect("lists").loaded.is_some()),
        ["command", "use", control] => commands::choose(Some(control), Some(1), None, None).expect("a rule"),
        ["command", "unload"] => drop(commands::unload(false).expect("unloads")),
        _ => {}
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// What loads in a small part of the time that all takes.
const FEW: &[&str] = &["wl_newreno", "wl_veno"];

/// Nothing of the place is left: no control, no mount, no folder.
fn is_clean(place: &Place) -> bool {
    soon(|| available(&place.prefix).is_empty()) && !place.folder.exists()
}

#[test]
fn load_outlives_the_loader_and_unload_leaves_nothing() {
    if !can_load() {
        return;
    }
    let place = private_place("l1_");
    assert!(matches!(load::unload(&place), Err(Error::NotLoaded)));
    assert!(is_clean(&place), "asking alone has left something");

    assert!(start_child("load", &place).wait().expect("ends").success());
    let names = available(&place.prefix);
    assert!(names.contains(&"l1_newreno".to_owned()), "{names:?}");
    let installed = Installed::own(&place).expect("is loaded");
    assert_eq!(installed.controls().len(), names.len());
    drop(installed);

    let again = load::load(&place, &[]).expect_err("loaded already");
    assert!(matches!(&again, Error::AlreadyLoaded { controls, .. } if controls.contains("l1_newreno")), "{again}");

    let removed = load::unload(&place).expect("unloads");
    assert_eq!((removed.controls.len(), removed.moved, removed.kept), (names.len(), 0, 0));
    assert!(is_clean(&place));
}

#[test]
fn who_loads_is_noted_and_need_not_be_asked() {
    if !can_load() {
        return;
    }
    let place = private_place("l7_");
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut loader = start_child("load wl_newreno", &place);
    let number = loader.id();
    assert!(loader.wait().expect("ends").success());
    let owner = Installed::own(&place).expect("is loaded").owner.expect("is noted");
    assert_eq!((owner.uid, owner.process), (nix::unistd::getuid().as_raw(), number));
    assert!(owner.command.contains("--exact child") && owner.loaded_at >= begin, "{owner:?}");
    // It has ended, and nobody else can speak for what it loaded.
    assert!(!owner.runs() && !owner.is_another());
    let again = load::load(&place, &[]).expect_err("loaded already").to_string();
    assert!(again.starts_with(&format!("loaded already by {}", owner.user)) && again.contains("has ended"), "{again}");
    assert!(start_child("command unload", &place).wait().expect("ends").success());
    assert!(is_clean(&place));
}

#[test]
fn what_is_lent_is_seen_by_all_and_goes_with_its_process() {
    if !can_load() {
        return;
    }
    let place = private_place("l8_");
    for forced in [false, true] {
        let mut lender = start_child("lend wl_newreno", &place);
        let there = within(Duration::from_secs(10), || Installed::own(&place).is_ok());
        assert!(there, "what is lent is not seen");
        let installed = Installed::own(&place).expect("is loaded");
        assert_eq!(installed.controls(), ["l8_newreno"]);
        assert!(installed.owner.as_ref().is_some_and(|owner| owner.process == lender.id() && owner.is_another()));
        drop(installed);
        assert!(matches!(load::load(&place, &[]), Err(Error::AlreadyLoaded { .. })));
        for job in ["list", "use wl_newreno", "unload politely"] {
            assert!(start_child(&format!("command {job}"), &place).wait().expect("ends").success(), "{job}");
        }
        assert_eq!(select::list(&Installed::own(&place).expect("is loaded")).expect("rules").len(), 1);
        if forced {
            load::unload(&place).expect("unloads");
            assert!(is_clean(&place), "with the process that lent it");
            assert!(lender.try_wait().expect("asked").is_none(), "the process that lent it has been ended");
        }
        lender.kill().expect("is killed");
        lender.wait().expect("ends");
        assert!(matches!(Installed::own(&place), Err(Error::NotLoaded)));
        assert!(is_clean(&place), "forced: {forced}");
    }
    // The number of a process that has ended may be another's, and so the descriptor.
    std::fs::create_dir_all(&place.folder).expect("a folder");
    std::os::unix::fs::symlink("/proc/self/root", place.mounted_on()).expect("a link");
    assert!(matches!(load::unload(&place), Err(Error::NotLoaded)));
    assert!(is_clean(&place));
}

#[test]
fn what_unloading_changes_is_said_before() {
    let Some(loaded) = Loaded::new("l9_", &["wl_newreno", "wl_veno"]) else { return };
    let place = &loaded.place;
    select::add(place, "wl_veno", &Match { port: Some(59_998), prefix: None }, None).expect("a rule");
    let before = consequences::of_unload(place).expect("can be told");
    assert!(!before.of_another);
    assert_eq!(before.controls, ["l9_newreno", "l9_veno"]);
    assert_eq!((before.rules.len(), before.connections), (1, Some(Vec::new())));

    // Two connections, of four ends, in a namespace with another usual control; one end of ours in this one.
    let inside = Namespace::new().expect("a namespace");
    inside.sysctl("ipv4/tcp_congestion_control", "reno").expect("reno");
    let listener = inside.run(|| TcpListener::bind("127.0.0.1:0")).expect("a port");
    let to = listener.local_addr().expect("bound");
    let there = ["l9_newreno", "l9_newreno", "l9_veno"].map(|control| connect_from(&inside, to, control));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    set_control(&here, "l9_veno").expect("is loaded");
    let shares = consequences::of_unload(place).expect("can be told").connections.expect("can be counted");
    let found: BTreeSet<_> = shares
        .iter()
        .map(|share| (share.own_namespace, share.control.as_str(), share.connections, share.becomes.clone()))
        .collect();
    let reno = || Some("reno".to_owned());
    let expected = [(false, "l9_newreno", 2, reno()), (false, "l9_veno", 1, reno()), (true, "l9_veno", 1, check::usual())];
    assert_eq!(found, expected.into(), "{shares:?}");
    let removed = load::unload(place).expect("unloads");
    assert_eq!((removed.moved, removed.kept), (4, 0));
    assert_eq!(there.each_ref().map(control_of), ["reno"; 3]);
    assert_eq!(Some(control_of(&here)), check::usual());
}

#[test]
fn commands_work_from_a_mount_namespace_of_their_own() {
    if !can_load() {
        return;
    }
    let place = private_place("l6_");
    let done = |starter: &[&str], job: &str| {
        let child = start_child_under(starter, &format!("command {job}"), &place).wait().expect("ends");
        assert!(child.success(), "{job} under {starter:?}: {child}");
    };
    // As `ip netns exec` does: with another /sys too, on which no control groups are mounted.
    let as_netns = "umount --lazy /sys && mount -t sysfs whyloss /sys && exec \"$@\"";
    let as_netns = ["unshare", "--mount", "--net", "--propagation", "slave", "sh", "-c", as_netns, "sh"];
    for starter in [&["unshare", "--mount"][..], &as_netns] {
        done(starter, "load wl_newreno");
        assert_eq!(available(&place.prefix), ["l6_newreno"], "what was loaded under {starter:?} has gone with it");
        let installed = Installed::own(&place).expect("is loaded, and seen from here");
        assert_eq!(installed.controls(), ["l6_newreno"]);
        drop(installed);
        done(starter, "list");
        done(starter, "use wl_newreno");
        assert_eq!(select::list(&Installed::own(&place).expect("is loaded")).expect("rules").len(), 1);
        done(starter, "unload");
        assert!(is_clean(&place), "after {starter:?}");
    }
}

/// The kernel's numbers of everything that is loaded: links, and maps, those that hold controls among them.
fn ids(root: &Path) -> (Vec<u32>, Vec<u32>) {
    let (mut links, mut maps) = (Vec::new(), Vec::new());
    for folder in ["controls", "links"] {
        for name in names(&root.join(folder)) {
            let info = Link::open(root.join(folder).join(name)).and_then(|link| link.info()).expect("a link");
            links.push(info.id);
            if let LinkTypeInfo::StructOps(control) = info.info {
                maps.push(control.map_id);
            }
        }
    }
    for name in names(&root.join("maps")) {
        let map = MapHandle::from_pinned_path(root.join("maps").join(name)).expect("a map");
        maps.push(map.info().expect("known").info.id);
    }
    (links, maps)
}

#[test]
fn a_copy_of_the_mount_keeps_nothing_alive() {
    if !can_load() {
        return;
    }
    let place = private_place("l5_");
    load::load(&place, &[]).expect("loads");
    let root = place.mounted_on();
    let (links, maps) = ids(&root);
    assert!(!links.is_empty() && maps.len() > links.len());
    // A container or a service of its own: what is unmounted outside stays mounted there.
    let mut elsewhere = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", "echo ready && read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare (util-linux)");
    let mut ready = [0; 6];
    elsewhere.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("starts");
    let copy = PathBuf::from(format!("/proc/{}/root", elsewhere.id())).join(root.strip_prefix("/").expect("absolute"));
    assert_eq!(names(&copy.join("controls")).len(), available(&place.prefix).len(), "the copy is none");

    load::unload(&place).expect("unloads");
    let left = || {
        let link = links.iter().filter(|&&id| LinkInfoIter::default().any(|link| link.id == id)).count();
        (link, maps.iter().filter(|&&id| MapHandle::from_map_id(id).is_ok()).count())
    };
    let gone = soon(|| left() == (0, 0));
    assert!(gone, "links and maps that are left: {:?}", left());
    assert!(is_clean(&place));
    drop(elsewhere.stdin.take());
    elsewhere.wait().expect("ends");
}

#[test]
fn what_is_not_asked_for_is_not_loaded() {
    if !can_load() {
        return;
    }
    let place = private_place("l2_");
    let wrong = load::load(&place, &["wl_nothing".to_owned()]).expect_err("no such control");
    assert!(wrong.is_refusal() && wrong.to_string().contains("wl_newreno"), "{wrong}");
    assert!(is_clean(&place));
    assert_eq!(load::load(&place, &["wl_newreno".to_owned()]).expect("loads"), ["l2_newreno"]);
    assert_eq!(available(&place.prefix), ["l2_newreno"]);
    load::unload(&place).expect("unloads");
    assert!(is_clean(&place));
}

#[test]
fn a_loader_killed_at_any_moment_has_loaded_all_or_nothing() {
    if !can_load() {
        return;
    }
    let place = private_place("l3_");
    for (controls, count) in [(&[][..], repetitions(8)), (FEW, 32)] {
        let job = ["load"].iter().chain(controls).copied().collect::<Vec<_>>().join(" ");
        let begin = Instant::now();
        assert!(start_child(&job, &place).wait().expect("ends").success());
        let duration = begin.elapsed();
        let all = available(&place.prefix).len();
        load::unload(&place).expect("unloads");

        let mut loaded = 0;
        for round in 0..count {
            let mut child = start_child(&job, &place);
            // Evenly over the time that loading takes, and a little more.
            std::thread::sleep(duration.mul_f64(1.2 * round as f64 / count as f64));
            child.kill().expect("is killed");
            child.wait().expect("ends");
            match Installed::own(&place) {
                Ok(installed) => {
                    assert_eq!(available(&place.prefix).len(), all, "{job}, round {round}: loaded in part");
                    drop(installed);
                    load::unload(&place).expect("unloads");
                    loaded += 1;
                }
                Err(error) => assert!(matches!(error, Error::NotLoaded), "{job}, round {round}: {error}"),
            }
            assert!(is_clean(&place), "{job}, round {round} has left {:?}", available(&place.prefix));
        }
        assert!(loaded < count, "{job}: no loader was killed before its end");
    }
}

#[test]
fn an_unloader_killed_at_any_moment_leaves_nothing_that_cannot_be_removed() {
    if !can_load() {
        return;
    }
    let place = private_place("l4_");
    for (controls, count) in [(&[][..], repetitions(6)), (FEW, 14)] {
        let load = || load::load(&place, &owned(controls));
        let mut duration = Duration::ZERO;
        for round in 0..=count {
            load().unwrap_or_else(|error| panic!("round {round}: {error}"));
            let begin = Instant::now();
            let mut child = start_child("unload", &place);
            if round == 0 {
                assert!(child.wait().expect("ends").success());
                duration = begin.elapsed();
                continue;
            }
            std::thread::sleep(duration.mul_f64(round as f64 / count as f64));
            child.kill().expect("is killed");
            child.wait().expect("ends");
            if round % 2 == 0 {
                // The next command finishes it, whichever it is.
                match load() {
                    Ok(_) | Err(Error::AlreadyLoaded { .. }) => {}
                    Err(error) => panic!("round {round}: {error}"),
                }
                load::unload(&place).expect("unloads");
            } else {
                match load::unload(&place) {
                    Ok(_) | Err(Error::NotLoaded) => {}
                    Err(error) => panic!("round {round}: {error}"),
                }
            }
            assert!(is_clean(&place), "round {round} has left {:?}", available(&place.prefix));
        }
    }
}
