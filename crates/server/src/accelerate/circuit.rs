//! A circuit that another process simulates, or why there is none.

use super::attachment::{AccelerateError, Refusal, refused};
use super::setting::Accelerate;
use crate::config::Config;
use glimmer_accel_link::Link;
use glimmer_hotset::device::Device;
use glimmer_node::Body;

/// Connects to the circuit of this configuration, if it has one. It answers nothing until it is
/// given keys.
pub(crate) fn connect(config: &Config) -> Result<Option<Body>, AccelerateError> {
    let Accelerate::Circuit { socket } = &config.accelerate else {
        return Ok(None);
    };
    let setting = config.accelerate.clone();
    let on_loss = move |reason: &str| {
        tracing::error!(
            "--accelerate {setting}: device lost: {reason}; the server answers its keys from now \
             on; restart the simulation and then the server to use it again"
        );
    };
    let link = Link::connect(socket, on_loss).map_err(|it| refused(config, it.into()))?;
    let slots = link.capabilities().slots;
    if slots != config.accelerate_slots {
        return Err(refused(config, Refusal::Slots(slots)));
    }
    Ok(Some(Body::Device(Box::new(link))))
}
