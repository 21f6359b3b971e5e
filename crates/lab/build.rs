//! Tells the crate which engine it is: a digest over the sources that decide results, so that no stored result outlives them.
//!
//! In the workspace these are the sources of all three engine crates. In a published crate they are its own: its version fixes the
//! versions of the other two.

use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = manifest.parent().expect("the crate lies in a folder");
    let mut digest = blake3::Hasher::new();
    digest.update(env!("CARGO_PKG_VERSION").as_bytes());
    let workspace = ["transport", "sim", "lab"].map(|name| crates.join(name).join("src"));
    let published = [manifest.join("src")];
    let sources = if workspace.iter().all(|folder| folder.is_dir()) { &workspace[..] } else { &published[..] };
    for sources in sources {
        println!("cargo::rerun-if-changed={}", sources.display());
        let mut files = Vec::new();
        collect(sources, &mut files);
        files.sort();
        for file in &files {
            // The path from the workspace on, so that the digest does not depend on where the workspace lies.
            let inside = file.strip_prefix(crates).unwrap_or(file);
            digest.update(inside.to_string_lossy().as_bytes());
            digest.update(&std::fs::read(file).unwrap_or_default());
        }
    }
    // A library of another version may round another way.
    let lock = crates.join("../Cargo.lock");
    if let Ok(versions) = std::fs::read(&lock) {
        println!("cargo::rerun-if-changed={}", lock.display());
        digest.update(&versions);
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=WHYLOSS_ENGINE={}", &digest.finalize().to_hex()[..32]);
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
