//! The body of the fuzz target `accelerator_link`.

use super::frame::split;
use super::message::{Answer, Request};

/// What either side is sent is refused, or is a
/// message that is written as the same bytes again.
///
/// # Panics
///
/// If it does anything else.
pub fn fuzz(data: &[u8]) {
    let Ok(Some((frame, end))) = split(data) else {
        return;
    };
    let mut again = Vec::new();
    if let Ok(request) = Request::read(frame) {
        request.append_to(&mut again);
        assert_eq!(again, data[..end]);
    }
    again.clear();
    if let Ok(answer) = Answer::read(frame) {
        answer.append_to(&mut again);
        assert_eq!(again, data[..end]);
    }
}
