//! How a client behaves, as C sees it.

use glimmer_client as native;

/// How a client behaves. What glimmer_settings_default returns is a good beginning. Times are in microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A request that is not answered for so long is sent again; the next time after twice as long,
    pub resend_first_us: u64,
    /// and so on, up to this.
    pub resend_longest_us: u64,
    /// A request is given up after so long.
    pub deadline_us: u64,
    /// A server that is away is asked again after so long.
    pub retry_us: u64,
    /// A server that lets so many deadlines pass one after another is away: requests for it fail at once with GLIMMER_OUTCOME_AWAY. 0: none ever is.
    pub away_after: u32,
    /// Requests that may share a datagram.
    pub requests_per_datagram: u32,
    /// Whether keys of a server that is away are placed among the others until it is back: for values that may be stale.
    pub eject: bool,
}

/// The usual settings.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_settings_default() -> Settings {
    let settings = native::Settings::default();
    Settings {
        resend_first_us: settings.resend_first_us,
        resend_longest_us: settings.resend_longest_us,
        deadline_us: settings.deadline_us,
        retry_us: settings.retry_us,
        away_after: settings.away_after,
        requests_per_datagram: settings.requests_per_datagram as u32,
        eject: settings.eject,
    }
}

/// The settings that a caller wants; the usual ones where there are none.
///
/// # Safety
///
/// `settings` is null or points at settings.
pub(crate) unsafe fn of(settings: *const Settings) -> native::Settings {
    // SAFETY: the caller's promise.
    let Some(settings) = (unsafe { settings.as_ref() }) else {
        return native::Settings::default();
    };
    native::Settings {
        resend_first_us: settings.resend_first_us,
        resend_longest_us: settings.resend_longest_us,
        deadline_us: settings.deadline_us,
        retry_us: settings.retry_us,
        away_after: settings.away_after,
        requests_per_datagram: settings.requests_per_datagram as usize,
        eject: settings.eject,
        ..native::Settings::default()
    }
}
