//! Runs packetdrill scripts against the engine in virtual time.
#![forbid(unsafe_code)]

use clap::Parser;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use whyloss_testkit::packetdrill::{find, run_text, ScriptOutcome};
use whyloss_testkit::settings::Settings;

/// Runs packetdrill scripts against the whyloss engine, in virtual time and without privileges.
///
/// Every script passes, fails (with line, expectation and observation) or is not supported (with the reason). The exit status is 0 if
/// none failed, 1 if one did, and 2 if the arguments make no sense.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Scripts, or folders that are searched for *.pkt.
    #[arg(required = true, value_name = "FOLDER|FILE")]
    paths: Vec<PathBuf>,
    /// Print one JSON array with an object for each script instead of text.
    #[arg(long)]
    json: bool,
    /// Profile for scripts that choose none: modern, linux, ns2, ns2-2001, freebsd45, qualnet.
    #[arg(long, default_value = "linux")]
    profile: String,
    /// Change one setting of the profile; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Show what happened before each failure.
    #[arg(long)]
    trace: bool,
}

#[derive(Serialize)]
struct Row {
    script: PathBuf,
    #[serde(flatten)]
    outcome: ScriptOutcome,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("whyloss-packetdrill: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether no script failed.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut settings = Settings::profile(&arguments.profile).map_err(|error| error.to_string())?;
    for setting in &arguments.settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| format!("--set {setting}: allowed is KEY=VALUE"))?;
        settings.set(key, value).map_err(|error| format!("--set {setting}: {error}"))?;
    }
    let scripts = find(&arguments.paths)?;
    if scripts.is_empty() {
        return Err("there is no *.pkt file there".to_owned());
    }
    let mut rows = Vec::new();
    for script in scripts {
        let octets = std::fs::read(&script).map_err(|error| format!("{}: {error}", script.display()))?;
        let outcome = run_text(&String::from_utf8_lossy(&octets), &settings);
        if !arguments.json {
            print(&script, &outcome, arguments.trace);
        }
        rows.push(Row { script, outcome });
    }
    let count = |wanted: fn(&ScriptOutcome) -> bool| rows.iter().filter(|row| wanted(&row.outcome)).count();
    let failed = count(|outcome| matches!(outcome, ScriptOutcome::Failed { .. }));
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?);
    } else {
        let passed = count(|outcome| matches!(outcome, ScriptOutcome::Passed));
        let unsupported = rows.len() - passed - failed;
        println!("{passed} passed, {failed} failed, {unsupported} not supported");
    }
    Ok(failed == 0)
}

fn print(script: &std::path::Path, outcome: &ScriptOutcome, with_trace: bool) {
    let script = script.display();
    match outcome {
        ScriptOutcome::Passed => println!("passed         {script}"),
        ScriptOutcome::Failed { line, expected, got, trace } => {
            println!("failed         {script}:{line}\n    expected {expected}\n    got      {got}");
            if with_trace {
                println!("{trace}");
            }
        }
        ScriptOutcome::NotSupported { line, what } => println!("not supported  {script}:{line}: {what}"),
    }
}
