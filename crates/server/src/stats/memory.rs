//! `stats memory`, an addition to memcached's statistics: how `-m` was planned, and on which pages
//! logs and indexes really lie. Asking the kernel for the latter takes milliseconds, so another
//! thread does that (`pages.rs`), and `stats` does not include it.

use glimmer_engine::PageReport;

use super::ServerAdmin;
use super::lines::Lines;

pub(super) fn write(admin: &ServerAdmin, pages: &PageReport, lines: &mut Lines<'_>) {
    let (config, plan) = (&admin.config, &admin.plan);
    lines.put("limit_maxbytes", config.memory_bytes);
    lines.put("partitions", plan.partitions);
    lines.put("log_bytes_per_partition", plan.log_bytes);
    lines.put("main_buckets_per_partition", plan.main_buckets);
    lines.put("spare_buckets_per_partition", plan.spare_buckets);
    lines.put("buffer_bytes_per_worker", plan.buffer_bytes_per_worker);
    lines.put("accelerator_bytes", plan.accelerator_bytes);
    lines.put("encryption_bytes", plan.encryption_bytes);
    lines.put("packet_bytes", plan.packet_bytes);
    lines.put("item_size_max", plan.item_bytes_max);
    lines.put("hugetlb_bytes", pages.hugetlb_bytes);
    lines.put("transparent_huge_bytes", pages.transparent_huge_bytes);
    lines.put("small_page_bytes", pages.small_bytes);
}
