//! What all panels are made of.

use ratatui::{layout::Rect, widgets::Block};

use crate::text::fit;

/// Width of the names in panels of single values.
pub const NAME_WIDTH: usize = 13;

/// Width inside a panel's frame.
pub fn inner(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}

pub fn framed(title: String, area: Rect) -> Block<'static> {
    // Two columns are the frame's corners.
    Block::bordered().title(fit(&[title], "", inner(area)))
}
