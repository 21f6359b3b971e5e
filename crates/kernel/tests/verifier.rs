//! The running kernel's verifier takes every object, and every control can be registered and goes again.
#![cfg(feature = "bpf")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::{available, can_load, skip};
use whyloss_kernel::controls::CONTROLS;
use whyloss_kernel::object::{controls, Loaded, Options, OBJECTS, PREFIX};

#[test]
fn objects_have_the_controls_of_the_table() {
    let objects = OBJECTS.iter().flat_map(|object| controls(object, PREFIX).expect("an ELF file"));
    let mut found: Vec<_> = objects.map(|control| (control.name, control.kernel_name)).collect();
    found.sort();
    let table = CONTROLS.iter().map(|control| (control.name.to_owned(), control.kernel_name.to_owned()));
    assert_eq!(found, table.collect::<Vec<_>>());
}

#[test]
fn the_verifier_takes_every_object() {
    if !can_load() {
        return;
    }
    assert!(!OBJECTS.is_empty());
    for object in OBJECTS {
        Loaded::new(object.name, &Options::default()).unwrap_or_else(|error| panic!("{}: {error}", object.name));
    }
}

#[test]
fn a_control_is_registered_as_long_as_its_link_lives() {
    if !can_load() {
        return;
    }
    let options = Options { prefix: "v1_".to_owned(), ..Options::default() };
    let mut loaded = Loaded::new("controls", &options).expect("loads");
    assert!(!loaded.controls().is_empty());
    for control in loaded.controls().to_vec() {
        assert!(control.name.starts_with("wl_") && control.kernel_name.starts_with("v1_"), "{control:?}");
        assert!(available("v1_").is_empty(), "{:?} are there before", available("v1_"));
        let link = loaded.register(&control.name).expect("registers");
        assert_eq!(available("v1_"), [control.kernel_name]);
        drop(link);
        assert!(available("v1_").is_empty(), "{:?} are there after", available("v1_"));
    }
}

#[test]
fn where_objects_load_the_kernel_has_what_the_check_asks_for() {
    if !can_load() {
        return;
    }
    // Another user of this machine may have controls of our names.
    for item in whyloss_kernel::check::items().into_iter().filter(|item| item.name != "names") {
        assert!(!item.needed_by_all || item.holds == Some(true), "{item:?}");
    }
}

#[test]
fn one_control_of_many_loads_alone() {
    if !can_load() {
        return;
    }
    let options = Options { controls: Some(vec!["wl_veno".to_owned()]), prefix: "v3_".to_owned(), ..Options::default() };
    let mut loaded = Loaded::new("controls", &options).expect("loads");
    let _link = loaded.register("wl_veno").expect("registers");
    assert_eq!(available("v3_"), ["v3_veno"]);
}

/// Programs know the kernel's structures by name only, so that an object fits any machine of 64 bits whose octets lie in the same order.
#[test]
fn objects_for_another_architecture_have_the_same_code() {
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("clang is missing");
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let includes = Path::new("/usr/include").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let compiled = |source: &str, architecture: &str| {
        let output = Command::new(&clang)
            .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g", "-Wno-unused-parameter"])
            .arg(format!("-D__TARGET_ARCH_{architecture}"))
            .args(["-c", "-o", "-", "-I", "include", "-I", ".", "-isystem", env!("WHYLOSS_BPF_HEADERS"), "-idirafter"])
            .arg(&includes)
            .arg(format!("{source}.bpf.c"))
            .current_dir(&sources)
            .output()
            .expect("clang");
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for object in OBJECTS {
        let [here, there] = ["x86", "arm64"].map(|architecture| compiled(object.name, architecture));
        assert!(here.starts_with(b"\x7fELF") && here == there, "{} differs", object.name);
    }
}
