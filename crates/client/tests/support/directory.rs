//! The directory of a server with one worker.

use glimmer_base::Seed;
use glimmer_proto::native::Directory;
use glimmer_proto::native::directory::{Access, Direction, Mode};

pub fn of(port: u16) -> Directory {
    Directory {
        token: 99,
        token_s: 3600,
        seed: Seed(5),
        item_bytes_max: 1 << 20,
        partitions: 1,
        mode: Mode::Cache,
        access: Access::Erew,
        direction: Direction::Client,
        mutation_window: 1024,
        begun_s: None,
        ports: vec![port],
    }
}
