//! `docs/schemes.md` is written from the tables. `UPDATE=1 cargo test -p whyloss-transport --test schemes_page` writes it anew.

use std::fmt::Write as _;
use std::path::Path;
use whyloss_transport::scheme::{Kind, Part, SCHEMES};
use whyloss_transport::{congestion, datagram, differentiation, reaction, receiver, timeout};

fn part<T: ?Sized>(page: &mut String, part: &Part<T>) {
    writeln!(page, "### `{}`\n\n{} ({})\n", part.name, part.summary, part.reference).unwrap();
    if part.parameters.is_empty() {
        return;
    }
    page.push_str("| parameter | default | allowed | meaning |\n| --- | --- | --- | --- |\n");
    for parameter in part.parameters {
        let default = parameter.kind.default_value().to_string();
        let allowed = match parameter.kind {
            Kind::Choice(words) => words.join(", "),
            kind => kind.to_string(),
        };
        writeln!(page, "| `{}` | {default} | {allowed} | {} |", parameter.name, parameter.summary).unwrap();
    }
    page.push('\n');
}

fn role<T: ?Sized>(page: &mut String, title: &str, key: &str, table: &[Part<T>]) {
    writeln!(page, "## {title}: `{key} = …`\n").unwrap();
    for row in table {
        part(page, row);
    }
}

fn page() -> String {
    let mut page =
        "# Schemes and parts\n\nWritten from the tables in `crates/transport`; `whyloss describe NAME` says the same.\n\n"
            .to_owned();
    page.push_str("## Schemes: `scheme = …`\n\n");
    page.push_str("| scheme | what it is | reference | congestion | differentiator | reaction | timeout | receiver |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for s in SCHEMES {
        let parts = [s.congestion, s.differentiator, s.reaction, s.timeout, s.receiver].join(" | ");
        writeln!(page, "| `{}` | {} | {} | {parts} |", s.name, s.summary, s.reference).unwrap();
    }
    page.push('\n');
    role(&mut page, "Congestion controls", "congestion", congestion::TABLE);
    role(&mut page, "Differentiators", "differentiator", differentiation::TABLE);
    role(&mut page, "Differentiators at the receiver", "differentiator", differentiation::AT_RECEIVER);
    role(&mut page, "Reactions", "reaction", reaction::TABLE);
    role(&mut page, "Timeout policies", "timeout", timeout::TABLE);
    role(&mut page, "Receiver agents", "receiver", receiver::TABLE);
    role(&mut page, "Datagrams with congestion control", "scheme", datagram::TABLE);
    format!("{}\n", page.trim_end())
}

#[test]
fn the_page_of_schemes_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemes.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/schemes.md is out of date: UPDATE=1 cargo test -p whyloss-transport --test schemes_page");
}
