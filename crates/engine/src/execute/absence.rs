//! Counts reads that find nothing, by reason.

use super::Context;
use glimmer_store::table::Absence;

/// Counts a read that found nothing.
#[inline(always)]
pub fn missed(context: &Context<'_>, absence: Absence) {
    context.tally.get_misses.add(1);
    absent(context, absence);
}

/// Counts the reason why there was no item.
#[inline(always)]
pub fn absent(context: &Context<'_>, absence: Absence) {
    match absence {
        Absence::Expired => context.tally.get_expired.add(1),
        Absence::Flushed => context.tally.get_flushed.add(1),
        Absence::Other => {}
    }
}
