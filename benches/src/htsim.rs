//! htsim in a folder that the user names: its library is built there, and our program against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;
use std::thread::available_parallelism;

/// What our program needs of htsim, and what builds its library.
const NEEDED: [&str; 8] = ["Makefile", "config.h", "eventlist.h", "network.h", "pipe.h", "queue.h", "route.h", "tcp.h"];

/// The folder of htsim's library in a checkout of <https://github.com/Broadcom/csg-htsim>.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout(PathBuf);

impl FromStr for Checkout {
    type Err = String;

    fn from_str(folder: &str) -> Result<Self, String> {
        let root = Path::new(folder);
        if !root.is_dir() {
            return Err("there is no such folder; name a checkout of https://github.com/Broadcom/csg-htsim".to_owned());
        }
        let sim = root.join("sim");
        let missing: Vec<_> = NEEDED.iter().filter(|file| !sim.join(file).is_file()).map(|file| format!("sim/{file}")).collect();
        if missing.is_empty() {
            Ok(Self(sim))
        } else {
            Err(format!("not a checkout of https://github.com/Broadcom/csg-htsim: it has no {}", missing.join(", ")))
        }
    }
}

impl Checkout {
    /// Builds htsim's library as its own instructions say, then the program `source` against it, as `program`.
    pub fn compile(&self, source: &Path, program: &Path) -> Result<(), String> {
        let Self(sim) = self;
        eprintln!("compiling htsim in {}", sim.display());
        let jobs = available_parallelism().map_or(1, usize::from);
        self.must(Command::new("make").arg("-C").arg(sim).arg(format!("-j{jobs}")).arg("libhtsim.a"))?;
        let library = sim.join("libhtsim.a");
        let mut build = Command::new("c++");
        build.args(["-O3", "-std=c++17", "-o"]).arg(program).arg("-I").arg(sim).arg(source).arg(library);
        self.must(&mut build)
    }

    fn must(&self, command: &mut Command) -> Result<(), String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let output: Output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|why| format!("htsim in {} needs `{name}` to compile: {why}", self.0.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("htsim in {} does not compile:\n{}", self.0.display(), said.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder with these files in `sim`, all empty but the Makefile.
    fn folder(files: &[&str], makefile: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sim")).unwrap();
        for file in files {
            let text = if *file == "Makefile" { makefile } else { "" };
            fs::write(folder.path().join("sim").join(file), text).unwrap();
        }
        folder
    }

    fn named(folder: &tempfile::TempDir) -> Result<Checkout, String> {
        folder.path().to_str().unwrap().parse()
    }

    #[test]
    fn a_folder_that_is_not_there_is_refused() {
        let said = "/nowhere/at/all".parse::<Checkout>().unwrap_err();
        assert!(said.contains("no such folder"), "{said}");
    }

    #[test]
    fn what_a_folder_lacks_is_named_and_nothing_else() {
        let said = named(&folder(&["Makefile", "config.h", "eventlist.h", "network.h", "pipe.h", "route.h"], ""));
        assert!(said.unwrap_err().ends_with("it has no sim/queue.h, sim/tcp.h"));
        assert!(named(&folder(&[], "")).unwrap_err().contains("sim/Makefile"));
    }

    #[test]
    fn a_library_that_does_not_build_says_why() {
        let folder = folder(&NEEDED, "libhtsim.a:\n\t@echo the library is broken >&2; false\n");
        let said = named(&folder).unwrap().compile(Path::new("none.cc"), &folder.path().join("program")).unwrap_err();
        assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
        assert!(said.contains("the library is broken"), "{said}");
    }

    #[test]
    fn a_program_that_does_not_compile_says_why() {
        let folder = folder(&NEEDED, "libhtsim.a:\n\t@ar -rc $@\n");
        let source = folder.path().join("program.cc");
        fs::write(&source, "#include \"tcp.h\"\n#error another htsim\n").unwrap();
        let said = named(&folder).unwrap().compile(&source, &folder.path().join("program")).unwrap_err();
        assert!(said.contains("another htsim"), "{said}");
    }

    #[test]
    fn a_program_is_compiled_against_the_checkout() {
        let folder = folder(&NEEDED, "libhtsim.a:\n\t@ar -rc $@\n");
        fs::write(folder.path().join("sim/tcp.h"), "#define ANSWER 42\n").unwrap();
        let (source, program) = (folder.path().join("program.cc"), folder.path().join("program"));
        fs::write(&source, "#include \"tcp.h\"\n#include <cstdio>\nint main() { std::printf(\"%d\", ANSWER); }\n").unwrap();
        named(&folder).unwrap().compile(&source, &program).unwrap();
        assert_eq!(Command::new(program).output().unwrap().stdout, b"42");
    }
}
