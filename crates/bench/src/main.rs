//! The program that measures; see the library beside it.

fn main() -> std::process::ExitCode {
    glimmer_bench::main()
}
