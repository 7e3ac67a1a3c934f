//! The core to which each worker is pinned, and its NUMA node.

use std::io;
use std::path::Path;

/// A core for each worker, for `--pin`: the cores that this process may use, in order, repeated if
/// there are more workers.
pub fn for_workers(workers: usize) -> io::Result<Vec<usize>> {
    let allowed = glimmer_transport::cores_allowed()?;
    Ok(allowed.into_iter().cycle().take(workers).collect())
}

/// The NUMA node of each core. Empty on a machine with a single node, where all memory is equally
/// near.
pub fn numa_nodes(cores: &[usize]) -> Vec<u32> {
    numa_nodes_under(Path::new("/sys/devices/system/cpu"), cores)
}

fn numa_nodes_under(cpus: &Path, cores: &[usize]) -> Vec<u32> {
    let nodes: Option<Vec<u32>> = cores
        .iter()
        .map(|core| numa_node(&cpus.join(format!("cpu{core}"))))
        .collect();
    let nodes = nodes.unwrap_or_default();
    let is_one_node = nodes.windows(2).all(|pair| pair[0] == pair[1]);
    if is_one_node { Vec::new() } else { nodes }
}

/// Each core's folder contains a link that is named after its node.
fn numa_node(cpu: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(cpu).ok()?;
    entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_gets_a_core_that_may_be_used() {
        let allowed = glimmer_transport::cores_allowed().unwrap();
        let cores = for_workers(allowed.len() + 1).unwrap();
        assert_eq!(cores[..allowed.len()], allowed);
        assert_eq!(cores[allowed.len()], allowed[0]);
    }

    #[test]
    fn nodes_are_read_from_the_cores_folders() {
        let cpus = tempfile::tempdir().unwrap();
        for (core, node) in [(0, 0), (1, 0), (2, 1)] {
            std::fs::create_dir_all(cpus.path().join(format!("cpu{core}/node{node}"))).unwrap();
        }
        assert_eq!(numa_nodes_under(cpus.path(), &[0, 1, 2]), [0, 0, 1]);
        let none: [u32; 0] = [];
        assert_eq!(
            numa_nodes_under(cpus.path(), &[0, 1]),
            none,
            "one node only"
        );
        assert_eq!(
            numa_nodes_under(cpus.path(), &[0, 3]),
            none,
            "a core without a node"
        );
    }
}
