//! The settings of a client, as C sees them.

use glimmer_client as native;

/// The settings of a client. Start from glimmer_settings_default. Times are in microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The first timeout of a request. After it, the request is retransmitted, and each further
    /// timeout is twice the previous one.
    pub resend_first_us: u64,
    /// The longest timeout.
    pub resend_longest_us: u64,
    /// The deadline after which a request fails.
    pub deadline_us: u64,
    /// The interval after which a server that is away is asked again.
    pub retry_us: u64,
    /// A server that misses this many deadlines in a row is away: its requests fail at once with
    /// GLIMMER_OUTCOME_AWAY. With 0, no server is ever away.
    pub away_after: u32,
    /// Requests that may share a datagram.
    pub requests_per_datagram: u32,
    /// Whether the keys of a server that is away are placed on the other servers until it is back.
    /// For values that may be stale.
    pub eject: bool,
}

/// The default settings.
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

/// The caller's settings, or the defaults if `settings` is null.
///
/// # Safety
///
/// `settings` is null or points at settings.
pub(crate) unsafe fn of(settings: *const Settings) -> native::Settings {
    // SAFETY: the caller guarantees it.
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
