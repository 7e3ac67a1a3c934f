//! The server's program; see the library beside it.

fn main() -> std::process::ExitCode {
    glimmer::main()
}
