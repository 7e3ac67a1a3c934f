//! What users and limits cost a request: instructions of a server, in user space.

use super::server::{self, Connection};
use crate::process::{released, say_where_measured, target_dir};
use std::fs;

/// A user with all rights, and one whose requests are judged one by one. The limits are never
/// reached.
const USERS: &str = "\
[ops]
password = \"correct horse\"
rights = [\"get\", \"set\", \"admin\"]

[shop]
password = \"battery staple\"
prefix = \"key:\"
requests = \"1g\"
";

/// What is counted of each connection: columns of the table.
const COLUMNS: [(&str, &str); 2] = [
    ("32 at once, instructions", "get, 32 at once"),
    ("one at a time, instructions", "get, one at a time"),
];

/// Counts, and prints the table and where that was.
pub fn count() -> anyhow::Result<()> {
    let server = server::build()?;
    released()?;
    let file = target_dir().join("callgrind/users.toml");
    fs::write(&file, USERS)?;
    let file = file.to_string_lossy();
    let users = ["--users", &file];
    let limited = ["--address-requests", "1g"];
    let connections = [
        ("without these flags", &[][..], ""),
        ("its address is limited", &limited, ""),
        ("of a user with all rights", &users, "ops correct horse"),
        (
            "of a user with a prefix and a limit, whose requests are judged one by one",
            &users,
            "shop battery staple",
        ),
    ];
    println!(
        "Instructions of a server in user space for a `get`: callgrind, one worker, built as \
         released but without optimisation at link time.\n"
    );
    println!(
        "| connection | {} |",
        COLUMNS.map(|(head, _)| head).join(" | ")
    );
    println!("|---|{}", "---|".repeat(COLUMNS.len()));
    for (name, options, login) in connections {
        let connection = Connection { options, login };
        let mut row = format!("| {name} |");
        for (_, scenario) in COLUMNS {
            let count = server::per_request_of(&server, scenario, &connection)?;
            row += &format!(" {count:.0} |");
        }
        println!("{row}");
    }
    say_where_measured()
}
