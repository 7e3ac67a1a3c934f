//! The program that shows a running server; see the library beside it.

fn main() -> std::process::ExitCode {
    glimmer_top::main()
}
