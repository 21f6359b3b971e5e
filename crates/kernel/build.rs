//! Compiles every `bpf/*.bpf.c` into an object that the library embeds, and tells the library which objects there are.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    if std::env::var_os("CARGO_FEATURE_CORES").is_some() {
        compile_for_host();
    }
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed=src/elf_error.c");
    cc::Build::new().file("src/elf_error.c").compile("whyloss_elf_error");
    link_zstd();
    let out = path_of("OUT_DIR");
    let sources = path_of("CARGO_MANIFEST_DIR").join("bpf");
    let clang = std::env::var_os("BPF_CLANG").unwrap_or_else(|| "clang".into());
    let mut digest = blake3::Hasher::new();
    let mut list = String::from("&[\n");
    for source in objects(&sources) {
        let name = source.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".bpf.c"));
        let name = name.unwrap_or_else(|| panic!("{}: a name in ASCII is needed", source.display()));
        let object = out.join(format!("{name}.bpf.o"));
        compile(&clang, &sources, &source, &object);
        let octets = std::fs::read(&object).unwrap_or_else(|error| panic!("{}: {error}", object.display()));
        digest.update(name.as_bytes());
        digest.update(&octets);
        let path = format!(r#"concat!(env!("OUT_DIR"), "/{name}.bpf.o")"#);
        writeln!(list, "    Embedded {{ name: {name:?}, octets: &Aligned(*include_bytes!({path})).0 }},")
            .expect("a string takes everything");
    }
    list.push(']');
    for (table, header) in [("counters.rs", "include/counters.h"), ("reports.rs", "checksum/state.h")] {
        std::fs::write(out.join(table), counters(&sources.join(header))).expect("OUT_DIR can be written");
    }
    std::fs::write(out.join("objects.rs"), list).expect("OUT_DIR can be written");
    // For the test that compiles them for another machine.
    println!("cargo::rustc-env=WHYLOSS_BPF_HEADERS={}", path_of("DEP_BPF_INCLUDE").display());
    println!("cargo::rustc-env=WHYLOSS_BPF_DIGEST={}", &digest.finalize().to_hex()[..32]);
}

/// The integer cores as a library of the host, for the tests that compare them with the engine.
fn compile_for_host() {
    cc::Build::new()
        .file("bpf/host.c")
        .file("bpf/reports.c")
        .include("bpf")
        .std("c11")
        .opt_level(2)
        .flag("-Wno-unused-parameter")
        .compile("whyloss_cores");
}

/// Links zstd too if libelf was built to use it, as it is in newer distributions; libbpf-sys knows of zlib only.
fn link_zstd() {
    // Where libbpf-sys looks for the archive, in its order.
    println!("cargo::rerun-if-env-changed=LIBBPF_SYS_LIBRARY_PATH");
    let folders = std::env::var("LIBBPF_SYS_LIBRARY_PATH").unwrap_or_default();
    let archive = |name: &str| folders.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    let Some(octets) = archive("libelf.a").and_then(|path| std::fs::read(path).ok()) else { return };
    if !octets.windows(5).any(|window| window == b"ZSTD_") {
        return;
    }
    let Some(zstd) = archive("libzstd.a") else { panic!("libelf.a needs zstd, and there is no libzstd.a beside it") };
    println!("cargo::rustc-link-search=native={}", zstd.parent().unwrap_or(Path::new(".")).display());
    // Whole, because the linker meets it before libelf, which asks for its parts.
    println!("cargo::rustc-link-lib=static:+whole-archive,-bundle=zstd");
}

fn path_of(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(variable).expect("cargo sets it"))
}

fn objects(sources: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sources).unwrap_or_else(|error| panic!("{}: {error}", sources.display()));
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    found.sort();
    found
}

/// The lines `X(name, "what")` of a header as a Rust table.
fn counters(header: &Path) -> String {
    let text = std::fs::read_to_string(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()));
    let rows =
        text.lines().filter_map(|line| line.trim().strip_prefix("X(")?.trim_end_matches(['\\', ' ', '\t']).strip_suffix(')'));
    let rows = rows.filter_map(|row| row.split_once(", "));
    let mut table = String::from("&[\n");
    for (name, what) in rows {
        writeln!(table, "    ({name:?}, {what}),").expect("a string takes everything");
    }
    assert!(table.lines().count() > 1, "{} has no counters", header.display());
    table + "]"
}

fn compile(clang: &OsString, sources: &Path, source: &Path, object: &Path) {
    // bpf_helpers.h and its like, as libbpf installs them.
    let libbpf = path_of("DEP_BPF_INCLUDE");
    let arch = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "arm64",
        Ok("riscv64") => "riscv",
        Ok("s390x") => "s390",
        Ok("powerpc64") => "powerpc",
        _ => "x86",
    };
    let status = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        // Paths in the object would make it differ from folder to folder.
        .arg(format!("-ffile-prefix-map={}=bpf", sources.display()))
        .arg("-I")
        .arg(sources.join("include"))
        .arg("-I")
        .arg(sources)
        .arg("-isystem")
        .arg(libbpf)
        .args(system_includes(clang))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{}: {} ends with {status}", source.display(), clang.to_string_lossy()),
        Err(error) => panic!(
            "the feature `bpf` needs clang to compile {}, but `{}` cannot be run: {error}; name another with BPF_CLANG",
            source.display(),
            clang.to_string_lossy()
        ),
    }
}

/// Where the host's clang finds <linux/bpf.h> and <asm/types.h>: the BPF target does not look there by itself.
fn system_includes(clang: &OsString) -> Vec<OsString> {
    let Ok(output) = Command::new(clang).args(["-v", "-E", "-x", "c", "/dev/null", "-o", "/dev/null"]).output() else {
        return Vec::new();
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.lines()
        .skip_while(|line| !line.starts_with("#include <...>"))
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .flat_map(|folder| ["-idirafter".into(), folder.trim().into()])
        .collect()
}
